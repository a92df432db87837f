package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// batch is an open transaction on a connection of its own.
type batch struct {
	*link
	store   *Store
	conn    *pgxpool.Conn
	tx      *tx
	marks   []sqlform.Mark
	fresh   []bool                // by mark: this batch wrote it
	former  *formers.Batch        // nil: no mark has a former identity
	streams *streams.Batch        // nil: no mark asks for one
	took    int                   // streams that were found
	busy    []int                 // marks of whose lines something waits
	lows    map[int64]sqlform.Low // low-water marks by scope
	asked   []store.Mark          // marks as they were given
	freed   int64                 // rows whose turn has come with the commit
	results []*request            // those that keep results with the commit
	unkept  error                 // why one of them cannot be kept
	// guarded: a row of the transaction's keeps anybody's COMMIT from succeeding but the
	// batch's. One that queues nothing but claims and statements writes all with its
	// COMMIT, and needs none until it reads.
	guarded bool

	// brokenBy is after which error of a handler's statement the transaction
	// cannot commit.
	brokenBy error
	// heard are the errors of the server that its statements met, the last ones.
	heard []*pgconn.PgError
	// ends: a handler tried to end the transaction by a statement.
	ends bool
	// outdated: a statement that the connection has prepared fits no more, so
	// it is closed, which forgets the statements of pgx and of handlers, too.
	outdated bool
	// spoiled: the connection may be why the store's own statements fail.
	spoiled bool

	mutex   sync.Mutex
	over    bool // guarded by mutex: the connection is given back
	cutOff  bool // guarded by mutex: the connection is closed
	cancels worker.Group
}

// direct is a batch whose handlers get a pgx.Tx.
type direct struct{ *batch }

// Tx implements store.Batch. All messages share one transaction.
func (b *direct) Tx(int) pgx.Tx { return b.tx }

// Commit implements store.Batch.
func (b *direct) Commit(ctx context.Context, e store.Ending) store.Result {
	statements, culprit, err := b.ending(e)
	if err != nil {
		return b.fail(ctx, culprit, err)
	}
	return b.commit(ctx, statements)
}

// commit sends the statements and COMMIT together. Only the server's own word
// says that nothing was committed.
func (b *batch) commit(ctx context.Context, statements []charged) store.Result {
	if err := b.state(); err != nil {
		return b.fail(ctx, store.NoCulprit, err)
	}
	if b.ends {
		return b.fail(ctx, store.NoCulprit, pgx.ErrTxClosed)
	}
	if err := context.Cause(ctx); err != nil {
		return b.fail(ctx, store.NoCulprit, &storeError{"commit", store.ClassDown, err})
	}
	commit := &request{sql: "commit"}
	failed, sent, err := b.finish(ctx, statements, commit)
	switch {
	case err == nil && commit.tag.String() == "COMMIT":
		b.end()
		return store.Result{Outcome: store.Committed, Culprit: store.NoCulprit, Freed: b.freed > 0 || b.streams.Came()}
	case err == nil:
		return b.fail(ctx, store.NoCulprit, fmt.Errorf("the server answered COMMIT with %v: %w", commit.tag, pgx.ErrTxCommitRollback))
	case sent && !b.undone(err, failed >= 0 && failed < len(statements)):
		b.cut()
		b.end()
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	if failed >= 0 && failed < len(statements) {
		return b.fail(ctx, statements[failed].mark, statements[failed].meant(b.store, err))
	}
	return b.fail(ctx, store.NoCulprit, err)
}

// finish prepares what is new, then sends everything. sent says that COMMIT may
// have reached the server.
func (b *batch) finish(ctx context.Context, statements []charged, commit *request) (failed int, sent bool, err error) {
	requests := make([]*request, 0, len(statements)+1)
	for i := range statements {
		requests = append(requests, statements[i].request)
	}
	requests = append(requests, commit)
	if failed, err = b.ready(ctx, requests); err != nil {
		return failed, false, err
	}
	failed, err = b.transmit(ctx, requests)
	return failed, true, err
}

// fail ends a batch of which nothing is committed.
func (b *batch) fail(ctx context.Context, culprit int, err error) store.Result {
	if b.pg.IsClosed() && code(err) == "" && !errors.Is(err, errSlow) && b.store.Classify(err) == store.ClassRetry {
		err = &storeError{"the connection is lost", store.ClassDown, err}
	}
	b.Rollback(ctx)
	return b.refused(culprit, err)
}

// refused says what an error means for a batch of which nothing is committed.
func (b *batch) refused(culprit int, err error) store.Result {
	class := b.store.Classify(err)
	var swallowed *sqlform.SwallowedError
	if class == store.ClassAborted || errors.As(err, &swallowed) { // no message's fault
		culprit = store.NoCulprit
	}
	return store.Result{Outcome: store.NotCommitted, Class: class, Culprit: culprit, Err: hint(err, false)}
}

// Rollback implements store.Batch.
func (b *batch) Rollback(ctx context.Context) {
	switch b.state() {
	case errBusy:
		b.cut()
	case nil:
		if !b.rolledBack(ctx) {
			b.cut()
		}
	}
	b.end()
}

// rolledBack reports whether the server has rolled back. Where the tracer panics,
// which pgx calls here, nobody knows.
func (b *batch) rolledBack(ctx context.Context) (done bool) {
	defer func() {
		if recover() != nil {
			done = false
		}
	}()
	_, err := b.link.conn.Exec(ctx, "rollback")
	return err == nil
}

// end gives the connection back; the pool throws it away unless it is idle and
// outside of any transaction.
func (b *batch) end() {
	b.mutex.Lock()
	over, cutOff := b.over, b.cutOff
	b.over = true
	b.mutex.Unlock()
	if over {
		return
	}
	b.cancels.Wait()
	if cutOff || b.outdated || b.spoiled {
		_ = b.link.conn.Close(context.Background())
	}
	b.conn.Release()
}

// cut closes the connection, so that the server ends what it still holds.
func (b *batch) cut() { b.cutAnd(func() {}) }

// cutAnd does something more if it was this call that cut, before the end can wait for it.
func (b *batch) cutAnd(do func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.over || b.cutOff {
		return
	}
	b.cutOff = true
	_ = b.pg.Conn().Close()
	do()
}

// cancelTimeout bounds the request that ends a statement of a killed batch.
const cancelTimeout = 2 * time.Second

// Kill implements store.Batch. A statement that the server is at is canceled.
func (b *batch) Kill() {
	b.cutAnd(func() { b.cancels.Go(b.cancel) })
}

// cancel asks the server to cancel the statement that it is at.
func (b *batch) cancel() {
	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	defer stop()
	_ = b.pg.CancelRequest(ctx)
}
