package pgxstore

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Default limits of a batch.
const (
	defaultLock   = 10 * time.Second
	defaultIdle   = time.Minute
	defaultAnswer = 30 * time.Second
)

// formatMilliseconds formats a limit for a setting of the server. If the limit is not positive, formatMilliseconds
// formats the fallback. The result is never 0, because 0 would mean no limit.
func formatMilliseconds(d, fallback time.Duration) string {
	if d <= 0 {
		d = fallback
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// The value of the statement limit with which the server's own setting stays in force.
const noLimit = "0"

// formatLimit formats the limit of a handler's statements for a setting.
func formatLimit(d time.Duration) string {
	if d <= 0 {
		return noLimit
	}
	return formatMilliseconds(d, 0) + "ms"
}

// Begin implements store.TxStore. BEGIN, the settings, the guard and the markers take one round trip. If
// markers exist already, reading them takes another round trip.
func (s *Store) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[pgx.Tx], []store.Verdict, error) {
	b, verdicts, err := s.beginBatch(ctx, o, marks, true)
	if err != nil {
		return nil, nil, err
	}
	return &directBatch{b}, verdicts, nil
}

// beginBatch begins a transaction and writes its markers. The parameter lent is true if handlers use the
// transaction before its end.
func (s *Store) beginBatch(ctx context.Context, o store.TxOptions, marks []store.Mark, lent bool) (*batch, []store.Verdict, error) {
	guess := len(marks) >= leastGuessed && s.guesses.shouldGuess(marks[0].Scope)
	b, verdicts, err := s.tryBegin(ctx, o, marks, lent, guess)
	if guess && errors.Is(err, errGuess) {
		s.guesses.recordDuplicate(marks[0].Scope, true)
		b, verdicts, err = s.tryBegin(ctx, o, marks, lent, false)
	}
	return b, verdicts, err
}

// errGuess means that the insert without checks failed because some markers exist already.
var errGuess = errors.New("not all marks are new")

// tryBegin makes one attempt to begin a batch. If guess is true, the markers are inserted without a check of each
// marker. If the error is errGuess, nothing was written.
func (s *Store) tryBegin(ctx context.Context, o store.TxOptions, marks []store.Mark, lent, guess bool) (*batch, []store.Verdict, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, s.wrapStoreError("connection", err)
	}
	given, former := marks, formers.Of(marks)
	marks = former.Marks(marks)
	b := &batch{store: s, conn: conn, link: newLink(conn.Conn()), marks: sqlform.Marks(marks), former: former}
	b.tx = &tx{batch: b}
	m := s.newMarking(b.marks, former)
	m.optimistic = guess && s.guessable(m)
	b.streams = streams.Of(marks)
	b.requestedMarks = marks
	b.hasGuard = lent || b.known.settingsAltered || b.streams != nil || !s.onlyClaims(m)
	requests := append(s.openingStatements(o, m, b.hasGuard), s.generationStatements(o.Working)...)
	b.lows = map[int64]sqlform.Low{}
	if ages := s.askAges(given, b.lows); ages != nil {
		requests = append(requests, ages)
	}
	requests = append(requests, b.takeStreams(o)...)
	requests = append(requests, b.lookAtLines(marks)...)
	err = b.ask(ctx, requests...)
	if m.optimistic && (m.missed || code(err) == sqlstate.UniqueViolation) {
		b.Rollback(ctx)
		return nil, nil, errGuess
	}
	if err == nil {
		err = b.readExistingMarkers(ctx, m)
	}
	if err == nil {
		err = b.streamsTaken()
	}
	if err != nil {
		b.suspect(ctx, err)
		b.Rollback(ctx)
		if cause := sqlstore.Unwritten(ctx, s.inner, err); cause != nil {
			err = &storeError{"mark", store.ClassDown, cause}
		}
		return nil, nil, s.wrapStoreError("begin", err)
	}
	b.fresh = m.writtenFlags()
	b.streams.Judge(m.verdicts)
	lines.Judge(marks, b.busy, m.verdicts)
	b.statement = max(o.Statement, 0)
	b.answer = cmp.Or(max(o.Answer, 0), defaultAnswer)
	answers := former.Judge(m.verdicts)
	sqlform.JudgeAges(given, b.lows, answers)
	return b, answers, nil
}

// readExistingMarkers reads the markers that existed already, and sets the verdicts (duplicate, conflict, …) of their
// messages.
func (b *batch) readExistingMarkers(ctx context.Context, m *marking) error {
	seen := len(m.existingMarks())
	b.store.learn(m, seen)
	if seen > 0 {
		if err := b.ask(ctx, m.existingStatement(b.store.sql.Judge)); err != nil {
			return err
		}
	}
	if err := b.store.setAside(m, func(r *request) error { return b.ask(ctx, r) }); err != nil {
		return err
	}
	if m.settingsAltered && !b.hasGuard {
		b.hasGuard, b.known.settingsAltered = true, true
		if err := b.ask(ctx, &request{sql: b.store.sql.Guard}); err != nil {
			return err
		}
	}
	return m.fault()
}

// ask sends the store's own statements, and returns the first error of the server or of reading rows.
func (b *batch) ask(ctx context.Context, requests ...*request) error {
	if _, err := b.exchange(ctx, requests); err != nil {
		return err
	}
	for _, r := range requests {
		if r.refusal != nil {
			return r.refusal
		}
	}
	return nil
}

// suspect decides whether to close the connection after an error of the statements that begin a batch. A handler may
// have left a setting on the connection, such as read only, with which every later transaction fails. If the connection
// is not the cause, the only cost of closing it is a new connection.
func (b *batch) suspect(ctx context.Context, err error) {
	b.unreliable = ctx.Err() == nil && code(err) != "" && b.store.Classify(err) != store.ClassContended
}

// openingStatements returns the statements before the first statement of a handler. The consumer's lock is taken
// before the lock timeout of markers is set, so that a long wait for the lock is no failure.
func (s *Store) openingStatements(o store.TxOptions, m *marking, guarded bool) []*request {
	requests := []*request{{sql: s.begin}}
	idle := formatMilliseconds(o.Idle, defaultIdle)
	if o.Serial && len(m.marks) > 0 {
		// The server's limit must not end a batch that waits for the consumer's lock.
		requests = append(requests, &request{sql: "set local statement_timeout = 0"},
			&request{sql: s.sql.Serial, args: []any{m.marks[0].Scope, idle, formatLimit(o.Turn)}})
	}
	effects := formatMilliseconds(o.EffectLock, defaultLock)
	claims, at := m.claimsToCheck()
	if s.onlyClaims(m) {
		numbers, tokens := sqlform.ClaimLists(claims)
		text := s.sql.BeginQueuedClaims
		if guarded {
			text = s.sql.BeginClaims
		}
		return append(requests, &request{sql: text, args: []any{numbers, tokens, idle, effects, formatLimit(o.Statement)}, read: m.readClaims(at)})
	}
	marks := m.insertStatement(s.sql.Begin)
	if m.optimistic {
		marks.sql, marks.read = s.sql.BeginNew, m.readCount
	}
	marks.args = append(marks.args, idle, formatMilliseconds(o.MarkLock, defaultLock), effects, formatLimit(o.Statement))
	requests = append(requests, marks)
	if len(claims) > 0 {
		requests = append(requests, &request{sql: s.sql.Look, args: []any{sqlform.ClaimsArgument(claims)}, read: m.readClaims(at)})
	}
	return requests
}

// onlyClaims reports whether all messages of a batch are claimed rows. A batch of claimed rows writes no marker, and
// can begin with a shorter statement.
func (s *Store) onlyClaims(m *marking) bool {
	claims, _ := m.claimsToCheck()
	return len(claims) > 0 && len(claims) == len(m.marks) && s.sql.BeginClaims != ""
}

// ScopeIn implements store.CallerTx. ScopeIn uses another connection than the transaction; PostgreSQL allows
// concurrent writers.
func (s *Store) ScopeIn(ctx context.Context, _ pgx.Tx, consumer, source string, generation int64) (int64, error) {
	return s.Scope(ctx, consumer, source, generation)
}

// ReceiveIn implements store.CallerTx for any pgx transaction. ReceiveIn takes one round trip more than MarkIn, to
// write the rows.
func (s *Store) ReceiveIn(ctx context.Context, tx pgx.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	verdicts, err := s.MarkIn(ctx, tx, marks)
	if err != nil {
		return nil, err
	}
	if reason != reasonname.None {
		return verdicts, s.parkIn(ctx, tx, marks, verdicts, messages, reason)
	}
	pieces, err := sqlform.Receive(s.crypt(), marks, verdicts, messages)
	if err != nil {
		return nil, s.wrapStoreError("receive", err)
	}
	var rows pgx.Batch
	for _, r := range pieces {
		rows.Queue(s.sql.Receive, r.Columns()...).Exec(func(tag pgconn.CommandTag) error { return sqlform.Written(tag.RowsAffected(), len(r.IDs)) })
	}
	if begun := streams.Received(marks, verdicts); len(begun) > 0 {
		q := beginStreams(s.sql, begun)
		rows.Queue(q.sql, q.args...)
	}
	texts, args := enqueueStatements(s.sql, sqlform.Marks(marks), lines.Received(marks, verdicts))
	for i := range texts {
		rows.Queue(texts[i], args[i]...)
	}
	if rows.Len() > 0 {
		if err := tx.SendBatch(ctx, &rows).Close(); err != nil {
			return nil, s.wrapStoreError("receive", err)
		}
	}
	return verdicts, nil
}

// MarkIn implements store.CallerTx for any pgx transaction. If another transaction handles the same message,
// MarkIn waits for that transaction as long as lock_timeout allows.
func (s *Store) MarkIn(ctx context.Context, tx pgx.Tx, marks []store.Mark) ([]store.Verdict, error) {
	former := formers.Of(marks)
	m := s.newMarking(sqlform.Marks(former.Marks(marks)), former)
	ask := func(r *request) error {
		rows, err := tx.Query(ctx, r.sql, r.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return r.read(rows)
	}
	err := ask(m.insertStatement(s.sql.Mark))
	if err == nil && len(m.existingMarks()) > 0 {
		err = ask(m.existingStatement(s.sql.Judge))
	}
	if err == nil {
		err = s.setAside(m, ask)
	}
	if err == nil {
		err = m.fault()
	}
	lows := map[int64]sqlform.Low{}
	if ages := s.askAges(marks, lows); err == nil && ages != nil {
		err = ask(ages)
	}
	answers := former.Judge(m.verdicts)
	if back := former.Back(); err == nil && len(back) > 0 {
		q := trimStatement(s.sql.Trim, m.marks, back)
		_, err = tx.Exec(ctx, q.sql, q.args...)
	}
	if err != nil {
		return nil, s.wrapStoreError("mark", err)
	}
	sqlform.JudgeAges(marks, lows, answers)
	return answers, nil
}

// generationStatements returns the statement that checks whether the batch may use its generation, and that locks the
// generation until the end of the batch. The statement is sent in the round trip that begins the batch.
func (s *Store) generationStatements(w generations.Working) []*request {
	if w.In == 0 {
		return nil
	}
	return []*request{{sql: s.sql.Working, args: sqlform.WorkingArguments(w), read: func(rows pgx.Rows) error {
		if rows.Next() {
			return rows.Err()
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return sqlform.NotWorking(w)
	}}}
}
