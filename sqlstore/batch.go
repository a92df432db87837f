package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/ended"
	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/leases"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// batch is a transaction with the markers of its messages.
type batch struct {
	*database.Session
	guarded        bool
	marks          []sqlform.Mark
	requestedMarks []store.Mark   // the markers to write, as passed by the caller
	fresh          []bool         // by index of the marker: true if this batch wrote the marker
	former         *formers.Batch // nil if no marker has a previous identity
	streams        *streams.Batch // nil if no message has a version that must be checked
	freed          bool           // true if the end of the batch unblocks rows
	results        []endResult    // results that the commit writes
	ended          bool
	asks           *sql.Stmt // statement that checks the transaction; prepared on first use
}

// Begin implements store.TxStore.
func (s *Store) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*sql.Tx], []store.Verdict, error) {
	b, verdicts, err := begin(ctx, s.db, o, marks)
	if err != nil {
		if cause := Unwritten(ctx, s, err); cause != nil {
			err = &database.Error{Doing: "mark", Class: store.ClassDown, Err: cause}
		}
		return nil, nil, s.db.Blameless("begin", err)
	}
	return b, verdicts, nil
}

// begin opens a transaction and writes its markers. The guard lets only the store's own last statement commit
// the transaction.
func begin(ctx context.Context, db *database.DB, o store.TxOptions, marks []store.Mark) (*batch, []store.Verdict, error) {
	if err := db.PrepareLists(ctx); err != nil {
		return nil, nil, err
	}
	e, err := db.Open(ctx, db.Level)
	if err != nil {
		return nil, nil, err
	}
	given, former := marks, formers.Of(marks)
	marks = former.Marks(marks)
	b := &batch{Session: e, marks: sqlform.Marks(marks), requestedMarks: marks, fresh: make([]bool, len(marks)), former: former}
	verdicts, err := b.start(ctx, o)
	if err == nil {
		err = b.lockGeneration(ctx, o.Working)
	}
	if err == nil {
		err = b.lookAt(ctx, marks, verdicts)
	}
	for i, v := range verdicts {
		b.fresh[i] = v.Kind == store.Fresh && marks[i].Claim.Token == 0
	}
	if err == nil {
		err = b.lookAtStreams(ctx, o, marks, verdicts)
	}
	if err == nil {
		err = b.lookAtLines(ctx, marks, verdicts)
	}
	if err == nil {
		verdicts = former.Judge(verdicts)
		err = marking.Lists{DB: db, Tx: e.InTx, Own: true}.JudgeAges(ctx, given, verdicts)
	}
	if err != nil {
		b.Suspect(ctx, err)
		b.Rollback(ctx)
		return nil, nil, err
	}
	return b, verdicts, nil
}

// TxAborted implements store.TxStatus. TxAborted reports whether the transaction cannot commit any more, because a
// handler has ended the transaction or because of an earlier error. If the driver does not show the state of the
// transaction, TxAborted asks the database.
func (b *batch) TxAborted() bool {
	if b.Handle.Status != nil {
		return b.Handle.Status() != database.InTransaction
	}
	if b.DB.Postgres != nil {
		return b.postgresBroken()
	}
	return b.sqliteBroken()
}

// errEnded means that a handler ended the transaction of its batch.
var errEnded = &database.Error{Doing: "the transaction has ended", Class: store.ClassPermanent, Err: ended.Err}

// AbortCause implements store.TxStatus. AbortCause returns errEnded if the handler ended the transaction. AbortCause
// cannot return other causes, because database/sql passes the error of a statement only to the handler.
func (b *batch) AbortCause() error {
	ended := false
	switch {
	case b.Handle.Status != nil:
		ended = b.Handle.Status() == database.NoTransaction
	case !b.Killed.Load():
		_, err := b.InTx.Exec(b.DB.SQL.Guarded)
		ended = database.IsOver(err)
	}
	if ended {
		return errEnded
	}
	return nil
}

// Tx implements store.Batch. All messages share one transaction.
func (b *batch) Tx(int) *sql.Tx { return b.InTx }

// Commit implements store.Batch.
func (b *batch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.ended {
		return b.failureResult(sql.ErrTxDone, store.NoCulprit)
	}
	culprit, err := b.finish(ctx, e)
	if err != nil {
		b.Doubt(err)
		b.Rollback(ctx)
		return b.failureResult(err, culprit)
	}
	b.ended = true
	err = b.CommitTx(ctx)
	refused := database.IsOver(err) || b.DB.Dialect.RolledBack(err) || b.canContinue() && database.PostgresRefused(err)
	b.Release(err == nil)
	switch {
	case err == nil:
		return store.Result{Outcome: store.Committed, Culprit: store.NoCulprit, Freed: b.freed}
	case refused:
		r := b.failureResult(err, store.NoCulprit)
		if database.SQLState(err) != "" && b.DB.Classify(err) == store.ClassRetry {
			// A deferred constraint or trigger failed, or COMMIT was canceled. A message of the batch may be the cause.
			// If the error counted as an outage of the store, the message would block all other messages forever.
			r.Class = store.ClassRetry
		}
		return r
	default:
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
}

// canContinue reports whether the connection is usable and, according to the driver, the transaction has ended.
func (b *batch) canContinue() bool {
	h := &b.Handle
	return h.Status != nil && h.Closed != nil && !h.Closed() && h.Status() == database.NoTransaction
}

// finish writes rows, results and ended claims of the batch, and removes the guard. If one message caused the error,
// the result culprit is the index of this message.
func (b *batch) finish(ctx context.Context, e store.Ending) (culprit int, err error) {
	e, moved := b.streams.End(b.former.End(e))
	if err := b.trim(ctx, e.Trim); err != nil {
		if b.DB.Classify(err) != store.ClassAborted {
			err = b.DB.Blameless("trim", err)
		}
		return store.NoCulprit, err
	}
	for i := range e.Rows {
		if err := b.writeRow(ctx, &e.Rows[i]); err != nil {
			return e.Rows[i].Mark, fmt.Errorf("sqlstore: row: %w", b.DB.Advised(err))
		}
	}
	if len(e.Claims) > 0 {
		if err := leases.ClaimsOf(b.DB).Close(ctx, b.DB, b.InTx, e.Claims); err != nil {
			return store.NoCulprit, b.convertOwnError(err)
		}
	}
	next, err := ordering.ChangeLines(ctx, b.DB, b.InTx, b.marks, lines.Entering(b.requestedMarks, &e), lines.Leaving(e.Claims))
	if err != nil {
		return store.NoCulprit, b.convertOwnError(err)
	}
	if err := ordering.BeginStreams(ctx, b.DB, b.InTx, b.streams.Begun(e.Trim)); err != nil {
		return store.NoCulprit, b.convertOwnError(err)
	}
	freed, err := ordering.MoveStreams(ctx, b.DB, b.InTx, moved)
	if err != nil {
		return store.NoCulprit, b.convertOwnError(err)
	}
	b.freed = freed || next || b.streams.Came()
	return store.NoCulprit, b.keepAndUnguard(ctx)
}

// convertOwnError converts an error of a statement about the store's own tables. If the server rejects a statement
// about the store's own tables, for example because of a missing privilege or a trigger, the error counts as a fault of
// the store, so that an operator can fix the cause and no message is parked.
func (b *batch) convertOwnError(err error) error {
	if b.DB.Classify(err) != store.ClassPermanent || !b.DB.MarksAlone() {
		return err // code other than Semel may also use the user's own table
	}
	return b.DB.Blameless("the end of the batch", err)
}

// errRolledBack means that a handler's statement rolled back the transaction.
var errRolledBack = fmt.Errorf("sqlstore: the transaction was rolled back by a statement of a handler: %w", sql.ErrTxDone)

func (b *batch) unguard(ctx context.Context, statement string, args ...any) error {
	return database.ExecOne(ctx, b.InTx, errRolledBack, statement, args...)
}

// failureResult returns the result of a batch that did not reach its COMMIT, or whose COMMIT certainly failed.
// Without a guard, a handler may have committed the transaction. So without a guard, the outcome is unknown until the
// next attempt reads the markers.
func (b *batch) failureResult(err error, culprit int) store.Result {
	r := store.Result{Outcome: store.NotCommitted, Class: b.DB.Classify(err), Culprit: store.NoCulprit, Err: err}
	if database.IsOver(err) && !b.guarded && !b.Killed.Load() {
		r.Outcome = store.CommitUnknown
	}
	switch r.Class {
	case store.ClassPermanent:
		r.Culprit = culprit
	case store.ClassRetry:
		r.Class = store.ClassDown
	}
	return r
}

func (b *batch) trim(ctx context.Context, marks []int) error {
	return marking.Trim(ctx, b.DB, b.InTx, b.marks, slices.DeleteFunc(slices.Clone(marks), func(i int) bool { return !b.fresh[i] }))
}

// Rollback implements store.Batch.
func (b *batch) Rollback(ctx context.Context) {
	if b.ended {
		return
	}
	b.ended = true
	b.RollbackTx(ctx)
}

// Kill implements store.Batch. SQLite runs in this process, so Kill closes no connection: the running statement
// completes, and no further statement starts. With a PostgreSQL driver that gives no access to its connection, Kill
// also closes no connection.
func (b *batch) Kill() { b.KillTx() }

// txState is the state of a batch's transaction.
type txState uint8

const (
	txUsable       txState = iota // statements succeed
	txFailed                      // the server answers, but rejects statements
	txUnresponsive                // the server does not answer
)

// ClassifyHandler implements store.TxStatus. If a handler's error looks like lock contention or an outage of the store,
// ClassifyHandler treats the error as a failure of the handler, with two exceptions: the transaction is broken and the
// error has a code of the database, or the server does not answer. database/sql passes the error of a statement only to
// the handler. So if the driver does not show the state of the transaction, ClassifyHandler checks the state with a
// statement.
//
// ClassifyHandler always accepts an error code of SQLite as an error of the database: when the disk is full, SQLite
// undoes only the statement, and the transaction continues.
func (b *batch) ClassifyHandler(ctx context.Context, err error) store.Class {
	class := b.DB.Classify(err)
	switch class {
	case store.ClassRetry, store.ClassPermanent:
		return class
	}
	d := b.DB.Dialect
	coded := d.Coded(err)
	switch s := b.queryState(ctx); {
	case s == txUnresponsive:
		return store.ClassDown
	case coded && d.Believes, s == txFailed && (coded || database.IsOver(err)):
		return class
	}
	return store.ClassRetry
}

func (b *batch) queryState(ctx context.Context) txState {
	if b.Handle.Status != nil {
		switch {
		case b.Handle.Closed != nil && b.Handle.Closed():
			return txUnresponsive
		case b.Handle.Status() == database.InTransaction:
			return txUsable
		}
		return txFailed
	}
	_, err := b.InTx.ExecContext(ctx, b.DB.SQL.Guarded)
	switch {
	case err == nil:
		return txUsable
	case database.IsOver(err), b.DB.Dialect.Coded(err):
		return txFailed
	}
	return txUnresponsive
}

// writeRow writes an inbox row with the commit. If the message has a row already, writeRow counts one more
// delivery in that row.
func (b *batch) writeRow(ctx context.Context, r *store.Row) error {
	m := &b.marks[r.Mark]
	if r.Repeat {
		for _, conflict := range b.DB.Crypt.Repeated(m, r.Conflict) {
			if err := b.exec(ctx, b.DB.SQL.Repeat, []any{m.Scope, m.Key, conflict}); err != nil {
				return err
			}
		}
		return nil
	}
	key := []any{m.Scope, m.Key, b.DB.Crypt.RowConflict(m, r.Conflict)}
	values, err := sqlform.RowValues(b.DB.Crypt, m, r)
	if err != nil {
		return err
	}
	row := slices.Concat(key[:2], []any{m.Long}, key[2:], values)
	if r.Conflict {
		return b.writeOne(ctx, b.DB.SQL.ConflictRow, row) // another batch may have written the same row first
	}
	// The row may exist already, because a row can be left behind when its marker is removed.
	err = b.writeOne(ctx, b.DB.SQL.Row, row)
	if err != nil || r.State.Outcome() == m.As {
		return err
	}
	return b.exec(ctx, b.DB.SQL.Outcome, []any{int64(r.State.Outcome()), m.Scope, m.Key})
}

func (b *batch) writeOne(ctx context.Context, statement string, args []any) error {
	return wrapRowError(b.DB, "the end of the batch", b.DB.WriteAll(ctx, b.InTx, 1, statement, args))
}

func (b *batch) exec(ctx context.Context, statement string, args []any) error {
	_, err := b.InTx.ExecContext(ctx, statement, args...)
	return err
}
