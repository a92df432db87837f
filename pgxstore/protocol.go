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
	// If not nil, the function read reads the rows of the answer. The error of read is stored in the field refusal.
	read func(pgx.Rows) error
	// oneRow is true if the server must check that the statement changes exactly one row.
	oneRow bool
	// If not nil, unmet is the handler's error for a statement that does not change exactly one row. The default is
	// semel.PreconditionFailed.
	unmet error
	// If the server must check that the statement writes a row of one of Semel's tables, checkedTable is the name of
	// that table; see sqlform.SwallowedError.
	checkedTable string
	// The field limited is true if the server limits the run time of the statement.
	limited bool
	// ownTables is true if the statement uses only Semel's tables.
	ownTables bool
	// The statement as the handler wrote it.
	text string
	tag  pgconn.CommandTag
	// The error of the function read; nil if read accepted the rows.
	refusal error

	statement *pgconn.StatementDescription
	encodedArgs
}

// encodedArgs contains the arguments in their wire format, and the formats of the result columns.
type encodedArgs struct {
	values          [][]byte
	formats, answer []int16
}

// The result failed of a function whose failure belongs to no request.
const none = -1

// link is a connection of the pool while a batch uses it.
type link struct {
	conn  *pgx.Conn
	pg    *pgconn.PgConn
	mode  pgx.QueryExecMode
	known *connectionData
	// The time limit for an answer, in addition to the limits of the statements. If this limit is 0, only the context
	// limits the time.
	answer time.Duration
	// The server's time limit for a limited statement; 0 means no limit.
	statement time.Duration
	// tracingDisabled is true after the tracer has panicked.
	tracingDisabled bool
}

// connectionData contains the store's data about a connection: its prepared statements by text, and its configuration.
type connectionData struct {
	mode       pgx.QueryExecMode
	tracer     pgx.QueryTracer // nil if there is none
	most       int
	number     int
	statements map[string]*pgconn.StatementDescription
	// The field stale is true if the server rejected one of the prepared statements.
	stale bool
	// The field exchanges is the number of pipelines. When this number reaches the field renewal, the statements are
	// prepared again.
	exchanges, renewal int
	// settingsAltered is true if the settings of the connection differ from the defaults, so that only a write shows
	// whether the connection can write.
	settingsAltered bool
	// oneRowTexts contains, for the text of a handler's statement, another text with which the server itself checks
	// that the statement changes exactly one row. The map is a cache; the field most is the maximum number of entries.
	oneRowTexts map[string]string
	// The slice size for the next pipeline; 0 before the first pipeline.
	slice int
	// The arena holds the arguments that are sent next.
	arena arena
}

const knownName = "github.com/semel-go/semel/pgxstore"

func newLink(conn *pgx.Conn) *link {
	data := conn.PgConn().CustomData()
	k, ok := data[knownName].(*connectionData)
	if !ok {
		config := conn.Config()
		k = &connectionData{mode: config.DefaultQueryExecMode, tracer: config.Tracer, most: max(config.StatementCacheCapacity, leastKnown),
			statements: map[string]*pgconn.StatementDescription{}, oneRowTexts: map[string]string{}}
		data[knownName] = k
	}
	return &link{conn: conn, pg: conn.PgConn(), mode: k.mode, known: k}
}

// The smallest limit for the number of prepared statements on a connection.
const leastKnown = 64

// usesNames reports whether prepared statements have names. Behind a pooler in transaction mode, names do not
// work.
func (l *link) usesNames() bool { return l.mode == pgx.QueryExecModeCacheStatement }

// describesArguments reports whether the server is asked for the types of arguments.
func (l *link) describesArguments() bool {
	return l.mode != pgx.QueryExecModeExec && l.mode != pgx.QueryExecModeSimpleProtocol
}

// exchange sends the requests together and reads the answers in order. An exchange takes one round trip, and another
// round trip if a statement is not prepared on this connection yet. If a statement fails, failed is the index of its
// request, and the later requests did not run. If the function read of a request returns an error, the other requests
// continue.
func (l *link) exchange(ctx context.Context, requests []*request) (failed int, err error) {
	if failed, err = l.prepareRequests(ctx, requests); err != nil {
		return failed, err
	}
	return l.transmit(ctx, requests)
}

// prepareRequests does all work that can fail, before the first request is sent.
func (l *link) prepareRequests(ctx context.Context, requests []*request) (failed int, err error) {
	if failed, err = l.rewrite(ctx, requests); err != nil {
		return failed, err
	}
	if failed, err = l.prepare(ctx, requests); err != nil {
		return failed, err
	}
	return l.encode(requests)
}

// errCopy rejects COPY, because with COPY the server sends or expects data in the middle of the pipeline.
var errCopy = errors.New("COPY cannot be sent together with other statements: use a handler of pgx.Tx and its Conn().CopyFrom, or an insert of several rows")

// rewrite lets arguments such as pgx.NamedArgs change their statement. rewrite rejects statements that cannot be sent
// in a pipeline.
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
	case l.usesNames():
		p.SendQueryStatement(r.statement, r.values, r.formats, r.answer)
	case r.statement != nil:
		p.SendQueryParams(r.sql, r.values, r.statement.ParamOIDs, r.formats, r.answer)
	default:
		p.SendQueryParams(r.sql, r.values, nil, r.formats, r.answer)
	}
}

// prepare prepares the statements that are not prepared on this connection yet. If the cache is full, prepare
// clears the cache, and prepares all statements of these requests.
func (l *link) prepare(ctx context.Context, requests []*request) (failed int, err error) {
	if !l.describesArguments() {
		return none, nil
	}
	first, texts := l.unpreparedTexts(requests, l.known.statements)
	full := l.known.stale || l.usesNames() && l.known.shouldRenew() || len(texts) > 0 && len(l.known.statements)+len(texts) > l.known.most
	if full {
		first, texts = l.unpreparedTexts(requests, nil)
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

// The number of pipelines after which a connection prepares its statements again for the first time.
const firstRenewal = 256

// shouldRenew counts a pipeline, and reports whether the statements should be prepared again. The server keeps
// the plan of a prepared statement until the table is analyzed, and a plan from the time when the table was tiny reads
// the whole table. The interval doubles each time, so the repeated preparation costs only a few round trips per
// connection.
func (k *connectionData) shouldRenew() bool {
	k.exchanges++
	if k.exchanges < max(k.renewal, firstRenewal) {
		return false
	}
	k.renewal = 2 * k.exchanges
	return true
}

// unpreparedTexts returns the texts of the requests that are not in the map known, each text once. The result first
// has the index of the first request with each text.
func (l *link) unpreparedTexts(requests []*request, known map[string]*pgconn.StatementDescription) (first map[string]int, texts []string) {
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

// describe prepares the texts in one round trip. If full is true, describe first frees the old statements.
func (l *link) describe(ctx context.Context, texts []string, full bool) (failed int, err error) {
	ctx, w := l.startWait(ctx)
	defer w.end()
	names := l.newNames(texts)
	end := l.tracePreparing(ctx, names, texts, w)
	w.limitNext(nil)
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

// newNames returns names for new statements. The names are empty if statements have no names. A name contains a
// hash of the text, because behind a pooler that does not track names, another client may have prepared another
// statement with the same number. With the hash, the server cannot run the wrong statement.
func (l *link) newNames(texts []string) []string {
	names := make([]string, len(texts))
	for i, text := range texts {
		if l.usesNames() {
			l.known.number++
			sum := sha256.Sum256([]byte(text))
			names[i] = fmt.Sprintf("semel_%d_%x", l.known.number, sum[:12])
		}
	}
	return names
}

// forget frees the prepared statements.
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

// encode encodes the arguments of all requests before anything is sent, so an argument that cannot be encoded does not
// affect other requests.
func (l *link) encode(requests []*request) (failed int, err error) {
	types := l.conn.TypeMap()
	var builder pgx.ExtendedQueryBuilder
	all := l.known.arena.reset()
	for i, r := range requests {
		if r.statement != nil {
			var ok bool
			if r.encodedArgs, ok = all.encodePlain(r.statement.ParamOIDs, r.args); ok {
				r.answer = all.answer(types, r.statement)
				continue
			}
		}
		if err := builder.Build(types, r.statement, r.args); err != nil {
			return i, &storeError{doing: "arguments of " + strconv.Quote(r.sql), class: classOfArguments, err: err}
		}
		r.encodedArgs = all.keep(&builder)
	}
	return none, nil
}

// arena stores encoded arguments. An arena copies the arguments that a pgx builder encoded, because the builder reuses
// its memory. Slices stay valid when the arena grows. Each connection has one arena.
type arena struct {
	bytes   []byte
	values  [][]byte
	formats []int16
}

// The largest memory that an arena keeps between batches.
const mostKept = 1 << 20

// reset removes the arguments that were sent before.
func (a *arena) reset() *arena {
	if cap(a.bytes) > mostKept {
		*a = arena{}
	}
	clear(a.values)
	a.bytes, a.values, a.formats = a.bytes[:0], a.values[:0], a.formats[:0]
	return a
}

// answer returns the formats for the result columns of a statement.
func (a *arena) answer(types *pgtype.Map, s *pgconn.StatementDescription) []int16 {
	at := len(a.formats)
	for i := range s.Fields {
		a.formats = append(a.formats, types.FormatCodeForOID(s.Fields[i].DataTypeOID))
	}
	return a.formats[at:len(a.formats):len(a.formats)]
}

func (a *arena) keep(b *pgx.ExtendedQueryBuilder) encodedArgs {
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
	return encodedArgs{values: a.values[first:len(a.values):len(a.values)], formats: a.codes(b.ParamFormats), answer: a.codes(b.ResultFormats)}
}

func (a *arena) codes(codes []int16) []int16 {
	at := len(a.formats)
	a.formats = append(a.formats, codes...)
	return a.formats[at:len(a.formats):len(a.formats)]
}
