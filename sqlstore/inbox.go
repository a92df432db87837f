package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// mostRows is the limit of Rows and Acts where none is given.
const mostRows = 1000

// Rows implements store.Inbox.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	return s.rows(ctx, f, func(*conditions) {})
}

// rows are those that the filter chooses, and what more asks beside it.
func (s *Store) rows(ctx context.Context, f store.RowFilter, more func(*conditions)) ([]store.StoredRow, error) {
	if f.Limit <= 0 {
		f.Limit = mostRows
	}
	c := &conditions{dialect: s.dialect, args: []any{f.Bodies, f.After, f.Limit}}
	order, by := "i.number", ""
	switch {
	case f.Stream != nil:
		order, c.args[1] = "i.stream_version, i.number", int64(0)
		c.stream(&f)
	case f.After > 0 && s.sqlite != nil:
		// Of a page that was full another follows: by number, instead of by an index of
		// all states, whose rows would be sorted anew for each page.
		by = " not indexed"
	}
	c.filter(&f)
	more(c)
	rows, err := s.db.QueryContext(ctx, strings.NewReplacer("{filter}", c.text.String(), "{order}", order, "{by}", by).Replace(s.sql.Rows), c.args...)
	if err != nil {
		return nil, s.blameless("rows", err)
	}
	defer rows.Close()
	var found []store.StoredRow
	for rows.Next() {
		r, err := s.scanRow(rows)
		if err != nil {
			return nil, s.blameless("rows", err)
		}
		found = append(found, r)
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("rows", err)
	}
	return found, nil
}

// conditions are a filter as SQL, with the arguments of the whole statement.
type conditions struct {
	dialect *dialect
	text    strings.Builder
	args    []any
}

// and adds a condition; each ? is the parameter of a value.
func (c *conditions) and(condition string, values ...any) {
	c.text.WriteString(" and ")
	for _, v := range values {
		before, after, _ := strings.Cut(condition, "?")
		c.args = append(c.args, v)
		c.text.WriteString(before + c.dialect.bind + strconv.Itoa(len(c.args)))
		condition = after
	}
	c.text.WriteString(condition)
}

func (c *conditions) filter(f *store.RowFilter) {
	if f.Consumer != "" {
		c.and("s.consumer = ?", []byte(f.Consumer))
	}
	if len(f.IDs) > 0 {
		keys := make([]any, len(f.IDs))
		for i, id := range f.IDs {
			keys[i], _ = sqlform.ID([]byte(id))
		}
		c.in("i.id", keys)
	}
	if f.Reason != "" {
		c.and("i.reason = ?", sqlform.Plain(string(f.Reason)))
	}
	if f.Type != "" {
		c.and("i.type = ?", sqlform.Plain(f.Type))
	}
	if !f.ReceivedBefore.IsZero() {
		c.and("i.received_at < "+c.dialect.moment, f.ReceivedBefore.UnixMilli())
	}
	if f.DueLater {
		c.and("(i.state <> 'RECEIVED' or i.due_at > " + c.dialect.now + ")")
	}
	if len(f.Numbers) > 0 {
		c.in("i.number", anys(f.Numbers))
	}
	if len(f.States) > 0 {
		c.in("i.state", states(f.States))
	}
}

// stream chooses rows of a stream, behind the last of the page before.
func (c *conditions) stream(f *store.RowFilter) {
	s := f.Stream
	c.and("s.source = ? and i.stream = ?", []byte(s.Source), []byte(s.Name))
	c.and("(i.stream_version > ? or i.stream_version = ? and i.number > ?)", s.From, s.From, f.After)
	if s.To > 0 {
		c.and("i.stream_version <= ?", s.To)
	}
}

func anys(numbers []int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = n
	}
	return all
}

func states(names []store.RowState) []any {
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}

// cells are the columns of a row, read one by one so that a broken one hides
// neither the others nor the rows after it.
type cells struct {
	table  string
	crypt  sqlform.Crypt
	values []any
	next   int
	faults []string
	hidden string // why nobody may work on it: what is encrypted cannot be read, or what is not should be
}

func (c *cells) take(what string) any {
	v := c.values[c.next]
	c.next++
	if v == nil && what != "" {
		c.fault(what, "is missing")
	}
	return v
}

func (c *cells) fault(what, why string) { c.faults = append(c.faults, what+" "+why) }

func (c *cells) integer(what string) int64 {
	v := c.take(what)
	n, ok := v.(int64)
	if !ok && v != nil {
		c.fault(what, "is not a number")
	}
	return n
}

// bytes is nil for NULL; with a name NULL is a fault.
func (c *cells) bytes(what string) []byte {
	switch v := c.take(what).(type) {
	case []byte:
		if v == nil { // a driver of SQLite gives such bytes for none, and nil for NULL
			return []byte{}
		}
		return v
	case string:
		return []byte(v)
	case nil:
		return nil
	default:
		c.fault(what, "is not text")
		return nil
	}
}

func (c *cells) text(what string) string { return string(c.bytes(what)) }

// mayTime is zero for NULL.
func (c *cells) mayTime() time.Time {
	if n, ok := c.take("").(int64); ok {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

func (c *cells) time(what string) time.Time { return time.UnixMilli(c.integer(what)) }

const rowColumns = 39

// fillParts puts what several statements share into each of them.
func (s *Store) fillParts() {
	for _, text := range s.withRows() {
		*text = strings.Replace(*text, "{columns}", s.sql.RowColumns, 1)
	}
	s.sql.Extend = strings.ReplaceAll(s.sql.Extend, "{lease ends}", s.sql.LeaseEnds)
	for _, text := range []*string{&s.sql.Retentions, &s.sql.Advance} {
		*text = strings.ReplaceAll(*text, "{cutoff}", s.sql.Cutoff)
	}
	s.sql.Look = strings.Replace(s.sql.Look, "{owned}", s.sql.Owned, 1)
	if s.sqlite != nil {
		for _, text := range []*string{&s.sqlite.StartCall, &s.sqlite.EndClaim} {
			*text = strings.Replace(*text, "{owned}", s.sql.Owned, 1)
		}
		s.sqlite.StartCall = strings.ReplaceAll(s.sqlite.StartCall, "{lease ends}", s.sql.LeaseEnds)
		for _, text := range []*string{&s.sqlite.Advanced, &s.sqlite.NextDue, &s.sqlite.Part} {
			*text = strings.ReplaceAll(*text, "{cutoff}", s.sql.Cutoff)
		}
	}
	if p := s.postgres; p != nil {
		p.StartCalls = strings.ReplaceAll(p.StartCalls, "{lease ends}", s.sql.LeaseEnds)
		for _, text := range []*string{&p.Begin, &p.BeginNew} {
			*text = strings.Replace(*text, "{writing}", p.Writing, 1)
		}
		p.Due = strings.Replace(p.Due, "{cutoff}", s.sql.Cutoff, 1)
		p.Place = strings.Replace(p.Place, "{cutoff}", s.sql.Cutoff, 1)
		for _, text := range []*string{&p.Place, &p.Part} {
			*text = strings.Replace(*text, "{due}", p.Due, 1)
		}
		for _, text := range []*string{&p.ReapRows, &p.Reap} {
			*text = strings.Replace(*text, "{part}", p.Part, 1)
		}
		p.Reaper = strings.NewReplacer("{advance}", p.Advance, "{patience}", p.Patience, "{place}", p.Place, "{reap rows}", p.ReapRows,
			"{reap}", p.Reap, "{walked}", p.Walked, "{reap bodies}", p.ReapBodies).Replace(p.Reaper)
		for _, text := range []*string{&p.StartCalls, &p.BeginClaims, &p.BeginQueuedClaims, &p.ClaimEnds, &p.CloseClaim} {
			*text = strings.Replace(*text, "{owned}", s.sql.Owned, 1)
		}
		p.ClaimEnds = strings.NewReplacer("{row ends}", p.RowEnds, "{call ends}", p.CallEnds).Replace(p.ClaimEnds)
		p.CloseClaim = strings.Replace(p.CloseClaim, "{row ends}", p.RowEnds, 1)
		for _, text := range []*string{&p.MoveStreams, &p.SkipStream} {
			*text = strings.Replace(*text, "{stream freed}", p.StreamFreed, 1)
		}
		for _, text := range []*string{&p.MoveStreams, &p.SkipStream, &p.AdvanceLines, &p.SweepLines} {
			*text = strings.Replace(*text, "{row freed}", p.RowFreed, 1)
		}
		for _, text := range []*string{&p.EndClaims, &p.CloseClaims} {
			*text = strings.Replace(*text, "{claim ends}", p.ClaimEnds, 1)
		}
	}
}

// scanRow reads a row, and the columns that a statement returns beside it.
func (s *Store) scanRow(rows *sql.Rows, more ...any) (store.StoredRow, error) {
	c := &cells{table: s.sql.Inbox, crypt: s.crypt, values: make([]any, rowColumns)}
	into := make([]any, rowColumns)
	for i := range into {
		into[i] = &c.values[i]
	}
	if err := rows.Scan(append(into, more...)...); err != nil {
		return store.StoredRow{}, err
	}
	r := c.row()
	r.Unreadable = c.hidden
	if len(c.faults) > 0 {
		r.LastError = fmt.Sprintf("the row cannot be read whole: %s; %s", strings.Join(c.faults, ", "), r.LastError)
	}
	return r, nil
}

// row reads the columns in the order of the statement.
func (c *cells) row() store.StoredRow {
	r := store.StoredRow{Number: c.integer("number"), Revision: c.integer("revision")}
	r.Key.Consumer, r.Key.Source = c.text("consumer"), c.text("source")
	id, long := c.bytes("id"), c.bytes("")
	var ok bool
	if r.Key.ID, ok = sqlform.OriginalID(id, long); !ok {
		c.fault("id", "is in no known form")
	}
	r.Conflict = len(c.bytes("conflict")) > 0
	version := c.integer("fingerprint version")
	r.Fingerprint = c.crypt.ReadPrint(sqlform.PrintOfID, sqlform.InnerKey(id), version, c.bytes(""))
	r.Surrogate = c.integer("surrogate") != 0
	r.State, r.Reason = c.state(), semel.Reason(c.text("reason"))
	r.Attempts, r.Repeated = int(c.integer("attempts")), int(c.integer("repeated"))
	r.FirstError = c.crypt.ShowError(r.Key, r.Number, c.text("first error"))
	r.LastError = c.crypt.ShowError(r.Key, r.Number, c.text("last error"))
	r.ReceivedAt, r.ChangedAt = c.time("received at"), c.time("changed at")
	r.Started = int(c.integer("started"))
	due, locked := c.mayTime(), c.mayTime()
	switch {
	case r.State == store.StateInProgress:
		r.LockedUntil = locked
	case r.State.Outcome() == store.Waiting:
		r.DueAt = due
	}
	r.Stream = string(c.bytes(""))
	r.Version, _ = c.take("").(int64)
	r.Line = string(c.bytes(""))
	r.Place, _ = c.take("").(int64)
	r.CallsStarted, r.CallsFinished = int(c.integer("calls started")), int(c.integer("calls finished"))
	r.CalledAt = c.mayTime()
	if r.State == store.StateCompleted || r.State == store.StateDiscarded {
		c.crypt = c.crypt.Lenient()
	}
	r.Steps = c.steps(r.Number)
	r.Message, r.Size = c.message(r.Key)
	r.BodyRemoved = c.integer("whether the body was removed") != 0
	return r
}

// steps are those of the row. One whose steps cannot be read says so, and that it has some.
func (c *cells) steps(row int64) []store.StepDone {
	done, err := sqlform.ReadSteps(c.crypt, row, c.bytes(""))
	if err != nil {
		c.fault("steps", "are broken: "+err.Error())
		return []store.StepDone{{}}
	}
	return done
}

// state is the row's, also one that only a newer release knows: people may read it.
func (c *cells) state() store.RowState {
	state, err := sqlform.State(c.text("state"), c.table)
	if err != nil {
		c.faults = append(c.faults, err.Error())
	}
	return state
}

func (c *cells) message(of semel.Key) (*semel.Message, int) {
	m := &semel.Message{Topic: c.text("topic")}
	m.Origin.Partition, m.Origin.Offset = int32(c.integer("partition")), c.integer("offset")
	m.Origin.BrokerID = c.text("broker id")
	m.Key = c.bytes("")
	m.Attributes.Type = c.text("type")
	envelope := c.bytes("envelope")
	size, _ := c.take("").(int64)
	m.Body = c.bytes("")
	if envelope != nil {
		kept := *m
		m.Attributes.Type = ""
		hiding, err := c.crypt.Unseal(of, envelope, m)
		switch {
		case hiding:
			*m = kept
			m.Key, m.Body, c.hidden = nil, nil, err.Error()
			c.faults = append(c.faults, c.hidden)
		case err != nil:
			*m = kept
			c.fault("envelope", "is broken: "+err.Error())
		default:
			c.hidden = c.crypt.RefusesPlain(envelope)
		}
	}
	return m, c.crypt.Size(envelope, int(size))
}
