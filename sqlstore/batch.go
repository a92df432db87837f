package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/store"
)

// batch is a session with marks.
type batch struct {
	*session
	guarded bool
	marks   []sqlform.Mark
	asked   []store.Mark   // marks as they were given
	fresh   []bool         // by mark: this batch wrote it and did not take it back
	former  *formers.Batch // nil: no mark has a former identity
	streams *streams.Batch // nil: no mark asks for one
	freed   bool           // with its end the turn of rows has come that were blocked
	results []endResult    // what the commit keeps
	ended   bool
	asks    *sql.Stmt // whether the transaction stands; prepared when first asked
}

// Begin implements store.TxStore.
func (s *Store) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*sql.Tx], []store.Verdict, error) {
	b, verdicts, err := s.begin(ctx, o, marks)
	if err != nil {
		if cause := Unwritten(ctx, s, err); cause != nil {
			err = &storeError{"mark", store.ClassDown, cause}
		}
		return nil, nil, s.blameless("begin", err)
	}
	return b, verdicts, nil
}

// begin opens a transaction that has written its marks, and that only the
// store's own last statement allows to commit.
func (s *Store) begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (*batch, []store.Verdict, error) {
	if err := s.prepareLists(ctx); err != nil {
		return nil, nil, err
	}
	e, err := s.open(ctx, s.level)
	if err != nil {
		return nil, nil, err
	}
	given, former := marks, formers.Of(marks)
	marks = former.Marks(marks)
	b := &batch{session: e, marks: sqlform.Marks(marks), asked: marks, fresh: make([]bool, len(marks)), former: former}
	verdicts, err := b.start(ctx, o)
	if err == nil {
		err = b.works(ctx, o.Working)
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
		err = lists{s, e.tx, true}.judgeAges(ctx, given, verdicts)
	}
	if err != nil {
		b.suspect(ctx, err)
		b.Rollback(ctx)
		return nil, nil, err
	}
	return b, verdicts, nil
}

// start writes the guard and the marks.
func (b *batch) start(ctx context.Context, o store.TxOptions) ([]store.Verdict, error) {
	if b.store.postgres != nil {
		return b.postgresStart(ctx, o)
	}
	return b.sqliteStart(ctx)
}

// TxAborted implements store.TxStatus: a handler committed, rolled back, or met an
// error after which the transaction cannot commit, so that statements after it
// would fail or stand alone. Where the driver does not show that, the database is
// asked.
func (b *batch) TxAborted() bool {
	if b.handle.status != nil {
		return b.handle.status() != inTransaction
	}
	if b.store.postgres != nil {
		return b.postgresBroken()
	}
	return b.sqliteBroken()
}

// errEnded: a handler ended the transaction of its batch.
var errEnded = &storeError{"the transaction is over", store.ClassPermanent,
	errors.New("the handler committed or rolled back by itself: return nil to commit, an error to roll back")}

// AbortCause implements store.TxStatus. A handler's *sql.Tx is database/sql's
// own, so nobody hears which error its statement met: that is not known. Known
// is that the handler ended it.
func (b *batch) AbortCause() error {
	ended := false
	switch {
	case b.handle.status != nil:
		ended = b.handle.status() == noTransaction
	case !b.killed.Load():
		_, err := b.tx.Exec(b.store.sql.Guarded)
		ended = isOver(err)
	}
	if ended {
		return errEnded
	}
	return nil
}

// Tx implements store.Batch. All messages share one transaction.
func (b *batch) Tx(int) *sql.Tx { return b.tx }

// Commit implements store.Batch.
func (b *batch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.ended {
		return b.refused(sql.ErrTxDone, store.NoCulprit)
	}
	culprit, err := b.finish(ctx, e)
	if err != nil {
		b.doubt(err)
		b.Rollback(ctx)
		return b.refused(err, culprit)
	}
	b.ended = true
	err = b.commit(ctx)
	refused := isOver(err) || b.store.dialect.rolledBack(err) || b.goesOn() && postgresRefused(err)
	b.over(err == nil)
	switch {
	case err == nil:
		return store.Result{Outcome: store.Committed, Culprit: store.NoCulprit, Freed: b.freed}
	case refused:
		r := b.refused(err, store.NoCulprit)
		if sqlState(err) != "" && b.store.Classify(err) == store.ClassRetry {
			// Something deferred failed in its own way or was cancelled, which
			// is somebody's: were it the store's, one message would stop all
			// others for ever.
			r.Class = store.ClassRetry
		}
		return r
	default:
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
}

// goesOn reports whether the driver shows that the server has said, on a
// connection that lives, that the transaction is over.
func (b *batch) goesOn() bool {
	h := &b.handle
	return h.status != nil && h.closed != nil && !h.closed() && h.status() == noTransaction
}

// finish writes what belongs to the commit and opens the guard. An error may
// name the mark to blame.
func (b *batch) finish(ctx context.Context, e store.Ending) (culprit int, err error) {
	e, moved := b.streams.End(b.former.End(e))
	if err := b.trim(ctx, e.Trim); err != nil {
		if b.store.Classify(err) != store.ClassAborted {
			err = b.store.blameless("trim", err)
		}
		return store.NoCulprit, err
	}
	for i := range e.Rows {
		if err := b.writeRow(ctx, &e.Rows[i]); err != nil {
			return e.Rows[i].Mark, fmt.Errorf("sqlstore: row: %w", b.store.advised(err))
		}
	}
	if len(e.Claims) > 0 {
		if err := claimsOf(b.store).close(ctx, b.store, b.tx, e.Claims); err != nil {
			return store.NoCulprit, b.ours(err)
		}
	}
	next, err := b.store.changeLines(ctx, b.tx, b.marks, lines.Entering(b.asked, &e), lines.Leaving(e.Claims))
	if err != nil {
		return store.NoCulprit, b.ours(err)
	}
	if err := b.store.beginStreams(ctx, b.tx, b.streams.Begun(e.Trim)); err != nil {
		return store.NoCulprit, b.ours(err)
	}
	freed, err := b.store.moveStreams(ctx, b.tx, moved)
	if err != nil {
		return store.NoCulprit, b.ours(err)
	}
	b.freed = freed || next || b.streams.Came()
	return store.NoCulprit, b.keepAndUnguard(ctx)
}

// ours is an error of a statement about the store's own tables: what the server refuses
// there, for lack of a right or because of somebody's trigger, is the store's. A person
// may mend it, and no message is set aside for it.
func (b *batch) ours(err error) error {
	if b.store.Classify(err) != store.ClassPermanent || !b.store.marksAlone() {
		return err // an adopted table is other people's, too
	}
	return b.store.blameless("the end of the batch", err)
}

// errRolledBack: the transaction was taken back under a handler.
var errRolledBack = fmt.Errorf("sqlstore: the transaction was rolled back by a statement of a handler: %w", sql.ErrTxDone)

// unguard opens the guard by a statement.
func (b *batch) unguard(ctx context.Context, statement string, args ...any) error {
	done, err := b.tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errRolledBack, err)
	}
	return nil
}

// refused is the result of a batch that did not reach its COMMIT, or whose
// COMMIT failed for certain. Without a guard a handler may have committed: then
// only marking again can tell.
func (b *batch) refused(err error, culprit int) store.Result {
	r := store.Result{Outcome: store.NotCommitted, Class: b.store.Classify(err), Culprit: store.NoCulprit, Err: err}
	if isOver(err) && !b.guarded && !b.killed.Load() {
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
	return b.store.trim(ctx, b.tx, b.marks, slices.DeleteFunc(slices.Clone(marks), func(i int) bool { return !b.fresh[i] }))
}

// trim takes back those of marks which tx wrote.
func (s *Store) trim(ctx context.Context, tx *sql.Tx, marks []sqlform.Mark, back []int) error {
	if len(back) == 0 {
		return nil
	}
	for chunk := range s.dialect.chunks(back) {
		flat := make([]any, 0, 2*len(chunk))
		for _, i := range chunk {
			flat = append(flat, marks[i].Scope, marks[i].Key)
		}
		text, args := s.bulk(s.sql.Trim, 2, flat)
		if _, err := tx.ExecContext(ctx, text, args...); err != nil {
			return err
		}
	}
	return nil
}

// Rollback implements store.Batch.
func (b *batch) Rollback(ctx context.Context) {
	if b.ended {
		return
	}
	b.ended = true
	b.rollback(ctx)
}

// Kill implements store.Batch. SQLite runs in this process, so there is no
// connection to cut: the statement under way is the last. So it is with a
// driver for PostgreSQL that does not show its connection.
func (b *batch) Kill() { b.kill() }
