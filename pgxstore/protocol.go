package pgxstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/semel-go/semel/internal/sqltext"
)

// request is one statement of a pipeline.
type request struct {
	sql  string
	args []any
	// read, if not nil, is given the rows; its error is a refusal.
	read func(pgx.Rows) error
	// one says that the server judges the count of rows.
	one bool
	// unmet, if not nil, is the error of its message then, instead of semel.PreconditionFailed.
	unmet error
	// kept is the table of Semel's that it writes a row of, if the server judges that; see
	// sqlform.SwallowedError.
	kept string
	// limited says that the server limits how long it runs.
	limited bool
	// own says that it is of Semel's tables only.
	own bool
	// text is the statement as its handler wrote it.
	text string
	tag  pgconn.CommandTag
	// refusal is what read said.
	refusal error

	statement *pgconn.StatementDescription
	encoded
}

// encoded are arguments as they are sent, and the form of the answer.
type encoded struct {
	values          [][]byte
	formats, answer []int16
}

// none is the index of a failure that belongs to no request.
const none = -1

// link is a connection of the pool while a batch has it.
type link struct {
	conn  *pgx.Conn
	pg    *pgconn.PgConn
	mode  pgx.QueryExecMode
	known *known
	// answer is how long an answer may take in addition to what limited
	// statements may; 0 leaves it to the context.
	answer time.Duration
	// statement is how long the server gives a limited one, 0 if as long as it takes.
	statement time.Duration
	// untraced: the tracer panicked.
	untraced bool
}

// known are the statements that a connection has prepared, by text, and what its
// configuration says.
type known struct {
	mode       pgx.QueryExecMode
	tracer     pgx.QueryTracer // nil if there is none
	most       int
	number     int
	statements map[string]*pgconn.StatementDescription
	// stale says that the server no longer takes one of them.
	stale bool
	// exchanges is how many pipelines asked for them, and renewal at how many they
	// are prepared anew.
	exchanges, renewal int
	// altered says that its settings are not those with which a connection begins, so
	// that only writing tells whether it writes.
	altered bool
	// ones are the texts of statements that must change one row, by what a
	// handler wrote; at most most.
	ones map[string]string
	// slice is how many statements may be answered together; 0 before the first.
	slice int
	// arena is of what is sent next.
	arena arena
}

const knownName = "github.com/semel-go/semel/pgxstore"

func newLink(conn *pgx.Conn) *link {
	data := conn.PgConn().CustomData()
	k, ok := data[knownName].(*known)
	if !ok {
		config := conn.Config()
		k = &known{mode: config.DefaultQueryExecMode, tracer: config.Tracer, most: max(config.StatementCacheCapacity, leastKnown),
			statements: map[string]*pgconn.StatementDescription{}, ones: map[string]string{}}
		data[knownName] = k
	}
	return &link{conn: conn, pg: conn.PgConn(), mode: k.mode, known: k}
}

// leastKnown is how many statements a connection keeps prepared at least.
const leastKnown = 64

// named reports whether statements are prepared under a name, which does not
// go through a pooler that gives every transaction another connection.
func (l *link) named() bool { return l.mode == pgx.QueryExecModeCacheStatement }

// described reports whether the server is asked for the types of arguments.
func (l *link) described() bool {
	return l.mode != pgx.QueryExecModeExec && l.mode != pgx.QueryExecModeSimpleProtocol
}

// exchange sends the requests together and reads the answers in order: one
// round trip, and one more if there are statements that this connection has not
// prepared yet. An error of a statement belongs to the request at failed; those
// after it did not run. A refusal stands in its request and ends nothing.
func (l *link) exchange(ctx context.Context, requests []*request) (failed int, err error) {
	if failed, err = l.ready(ctx, requests); err != nil {
		return failed, err
	}
	return l.transmit(ctx, requests)
}

// ready does what can fail before the first of the requests is sent.
func (l *link) ready(ctx context.Context, requests []*request) (failed int, err error) {
	if failed, err = l.rewrite(ctx, requests); err != nil {
		return failed, err
	}
	if failed, err = l.prepare(ctx, requests); err != nil {
		return failed, err
	}
	return l.encode(requests)
}

// errCopy: the server would wait for data, or send it, in the middle of the
// statements that are sent together, and nobody would know what became of them.
var errCopy = errors.New("COPY cannot be sent together with other statements: use a handler of pgx.Tx and its Conn().CopyFrom, or an insert of several rows")

// rewrite lets arguments such as pgx.NamedArgs change their statement, and
// refuses one that cannot be sent with others.
func (l *link) rewrite(ctx context.Context, requests []*request) (failed int, err error) {
	for i, r := range requests {
		if _, prepared := l.known.statements[r.sql]; !prepared && sqltext.Postgres().Copies(r.sql) {
			return i, &storeError{doing: strconv.Quote(r.sql), class: classOfArguments, err: errCopy}
		}
		if len(r.args) == 0 {
			continue
		}
		by, ok := r.args[0].(pgx.QueryRewriter)
		if !ok {
			continue
		}
		if r.sql, r.args, err = by.RewriteQuery(ctx, l.conn, r.sql, r.args[1:]); err != nil {
			return i, &storeError{doing: "arguments of " + strconv.Quote(r.sql), class: classOfArguments, err: err}
		}
		if sqltext.Postgres().Ends(r.sql) {
			return i, errEnded
		}
	}
	return none, nil
}

func (l *link) send(p *pgconn.Pipeline, r *request) {
	switch {
	case l.named():
		p.SendQueryStatement(r.statement, r.values, r.formats, r.answer)
	case r.statement != nil:
		p.SendQueryParams(r.sql, r.values, r.statement.ParamOIDs, r.formats, r.answer)
	default:
		p.SendQueryParams(r.sql, r.values, nil, r.formats, r.answer)
	}
}

// prepare has the server parse what this connection has not sent before. A full
// cache starts anew with all that these requests need.
func (l *link) prepare(ctx context.Context, requests []*request) (failed int, err error) {
	if !l.described() {
		return none, nil
	}
	first, texts := l.missing(requests, l.known.statements)
	full := l.known.stale || l.named() && l.known.outgrown() || len(texts) > 0 && len(l.known.statements)+len(texts) > l.known.most
	if full {
		first, texts = l.missing(requests, nil)
	}
	if len(texts) > 0 {
		if n, err := l.describe(ctx, texts, full); err != nil {
			if n != none {
				n = first[texts[n]]
			}
			return n, err
		}
	}
	for _, r := range requests {
		r.statement = l.known.statements[r.sql]
	}
	return none, nil
}

// firstRenewal is how many pipelines a connection sends before it prepares its
// statements anew.
const firstRenewal = 256

// outgrown counts a pipeline. It reports whether the tables may be many times as large
// by now as when the statements were planned: the server keeps a plan until somebody
// analyzes the table, and one for a table of a page reads it whole. Twice as many
// pipelines each time are a handful of round trips in a connection's life.
func (k *known) outgrown() bool {
	k.exchanges++
	if k.exchanges < max(k.renewal, firstRenewal) {
		return false
	}
	k.renewal = 2 * k.exchanges
	return true
}

// missing are the texts of the requests that are not known, each once, and the
// request that is the first to have it.
func (l *link) missing(requests []*request, known map[string]*pgconn.StatementDescription) (first map[string]int, texts []string) {
	for i, r := range requests {
		if known[r.sql] != nil {
			continue
		}
		if first == nil {
			first = map[string]int{}
		}
		if _, ok := first[r.sql]; !ok {
			first[r.sql] = i
			texts = append(texts, r.sql)
		}
	}
	return first, texts
}

// describe prepares the texts in one round trip.
func (l *link) describe(ctx context.Context, texts []string, full bool) (failed int, err error) {
	ctx, w := l.waiting(ctx)
	defer w.end()
	names := l.names(texts)
	end := l.tracePreparing(ctx, names, texts, w)
	w.next(nil)
	p := l.pg.StartPipeline(ctx)
	forgotten := 0
	if full {
		forgotten = l.forget(p)
	}
	for i, text := range texts {
		p.SendPrepare(names[i], text, nil)
	}
	failed, err = none, p.Sync()
	for range forgotten {
		if err == nil {
			_, err = p.GetResults()
		}
	}
	for i := 0; i < len(texts) && err == nil; i++ {
		var got any
		if got, err = p.GetResults(); err != nil {
			failed = i
			break
		}
		if d, ok := got.(*pgconn.StatementDescription); ok {
			d.Name, d.SQL = names[i], texts[i]
			l.known.statements[texts[i]] = d
		}
	}
	if closing := p.Close(); err == nil {
		err = closing
	}
	err = w.explain(ctx, err)
	end(failed, err)
	return failed, err
}

// names are those of new statements, empty where they have none. Behind a pooler that does
// not know of them another connection of the server may have one of the same number: what a
// name stands for is in it, so that the server never does what was prepared by somebody else
// and happens to take as many arguments.
func (l *link) names(texts []string) []string {
	names := make([]string, len(texts))
	for i, text := range texts {
		if l.named() {
			l.known.number++
			sum := sha256.Sum256([]byte(text))
			names[i] = fmt.Sprintf("semel_%d_%x", l.known.number, sum[:12])
		}
	}
	return names
}

// forget frees what is prepared.
func (l *link) forget(p *pgconn.Pipeline) (forgotten int) {
	for _, d := range l.known.statements {
		if d.Name != "" {
			p.SendDeallocate(d.Name)
			forgotten++
		}
	}
	clear(l.known.statements)
	l.known.stale = false
	return forgotten
}

// encode puts the arguments into the form in which they are sent, all before
// anything is sent, so that one that can't be encoded harms no other.
func (l *link) encode(requests []*request) (failed int, err error) {
	types := l.conn.TypeMap()
	var builder pgx.ExtendedQueryBuilder
	all := l.known.arena.empty()
	for i, r := range requests {
		if r.statement != nil {
			var ok bool
			if r.encoded, ok = all.plain(r.statement.ParamOIDs, r.args); ok {
				r.answer = all.answer(types, r.statement)
				continue
			}
		}
		if err := builder.Build(types, r.statement, r.args); err != nil {
			return i, &storeError{doing: "arguments of " + strconv.Quote(r.sql), class: classOfArguments, err: err}
		}
		r.encoded = all.keep(&builder)
	}
	return none, nil
}

// arena keeps arguments as they are sent: what a builder made, which it forgets
// with its next statement, and what is plain. A slice that was handed out stays
// as it is when the arena grows. A connection has one, for what it sends next.
type arena struct {
	bytes   []byte
	values  [][]byte
	formats []int16
}

// mostKept is how many bytes of memory an arena keeps between two batches.
const mostKept = 1 << 20

// empty forgets what was sent.
func (a *arena) empty() *arena {
	if cap(a.bytes) > mostKept {
		*a = arena{}
	}
	clear(a.values)
	a.bytes, a.values, a.formats = a.bytes[:0], a.values[:0], a.formats[:0]
	return a
}

// answer is the form in which a statement's rows are to come.
func (a *arena) answer(types *pgtype.Map, s *pgconn.StatementDescription) []int16 {
	at := len(a.formats)
	for i := range s.Fields {
		a.formats = append(a.formats, types.FormatCodeForOID(s.Fields[i].DataTypeOID))
	}
	return a.formats[at:len(a.formats):len(a.formats)]
}

func (a *arena) keep(b *pgx.ExtendedQueryBuilder) encoded {
	first := len(a.values)
	for _, v := range b.ParamValues {
		if v == nil {
			a.values = append(a.values, nil)
			continue
		}
		at := len(a.bytes)
		a.bytes = append(a.bytes, v...)
		a.values = append(a.values, a.bytes[at:len(a.bytes):len(a.bytes)])
	}
	return encoded{values: a.values[first:len(a.values):len(a.values)], formats: a.codes(b.ParamFormats), answer: a.codes(b.ResultFormats)}
}

func (a *arena) codes(codes []int16) []int16 {
	at := len(a.formats)
	a.formats = append(a.formats, codes...)
	return a.formats[at:len(a.formats):len(a.formats)]
}
