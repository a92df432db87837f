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
	store          *Store
	conn           *pgxpool.Conn
	tx             *tx
	marks          []sqlform.Mark
	fresh          []bool                // by index of the marker: this batch wrote the marker
	former         *formers.Batch        // nil if no marker has a previous identity
	streams        *streams.Batch        // nil if no message has a version that must be checked
	took           int                   // number of streams that were locked
	busy           []int                 // indexes of markers whose lane has waiting rows
	lows           map[int64]sqlform.Low // times up to which markers were removed, by scope (the number of a consumer, source and generation)
	requestedMarks []store.Mark          // the markers to write, as passed by the caller
	freed          int64                 // number of rows that the commit unblocks
	results        []*request            // statements that write results at commit
	resultError    error                 // why a result cannot be written; nil if there is no error
	// hasGuard is true if a guard row makes every COMMIT fail except the COMMIT of the batch itself. A batch
	// that has only claims and queued statements sends all writes together with its COMMIT, and needs the guard only if
	// it reads.
	hasGuard bool

	// The error of a handler's statement after which the transaction cannot commit.
	brokenBy error
	// The last errors of the server for statements of this batch.
	serverErrors []*pgconn.PgError
	// endAttempted is true if a handler tried to end the transaction by a statement.
	endAttempted bool
	// outdated is true if a prepared statement of the connection is no longer valid. An outdated connection is closed,
	// so that the statements of pgx and of handlers are also prepared again.
	outdated bool
	// unreliable is true if the store's own statements may fail because of the state of the connection.
	unreliable bool

	mutex            sync.Mutex
	released         bool // guarded by mutex; true after the connection was released
	connectionClosed bool // guarded by mutex; true after closeConnection
	cancels          worker.Group
}

// directBatch is a batch whose handlers get a pgx.Tx.
type directBatch struct{ *batch }

// Tx implements store.Batch. All messages share one transaction.
func (b *directBatch) Tx(int) pgx.Tx { return b.tx }

// Commit implements store.Batch.
func (b *directBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	statements, culprit, err := b.endStatements(e)
	if err != nil {
		return b.fail(ctx, culprit, err)
	}
	return b.commit(ctx, statements)
}

// commit sends the statements together with COMMIT. The result is store.NotCommitted only if an answer of the server
// proves that nothing was committed.
func (b *batch) commit(ctx context.Context, statements []endStatement) store.Result {
	if err := b.state(); err != nil {
		return b.fail(ctx, store.NoCulprit, err)
	}
	if b.endAttempted {
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
	case sent && !b.isRolledBack(err, failed >= 0 && failed < len(statements)):
		b.closeConnection()
		b.end()
		return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: err}
	}
	if failed >= 0 && failed < len(statements) {
		return b.fail(ctx, statements[failed].mark, statements[failed].convertError(b.store, err))
	}
	return b.fail(ctx, store.NoCulprit, err)
}

// finish prepares new statements, and then sends all statements. The result sent is true if COMMIT may have reached the
// server.
func (b *batch) finish(ctx context.Context, statements []endStatement, commit *request) (failed int, sent bool, err error) {
	requests := make([]*request, 0, len(statements)+1)
	for i := range statements {
		requests = append(requests, statements[i].request)
	}
	requests = append(requests, commit)
	if failed, err = b.prepareRequests(ctx, requests); err != nil {
		return failed, false, err
	}
	failed, err = b.transmit(ctx, requests)
	return failed, true, err
}

// fail rolls back and returns the result of a batch that was not committed.
func (b *batch) fail(ctx context.Context, culprit int, err error) store.Result {
	if b.pg.IsClosed() && code(err) == "" && !errors.Is(err, errSlow) && b.store.Classify(err) == store.ClassRetry {
		err = &storeError{"the connection is lost", store.ClassDown, err}
	}
	b.Rollback(ctx)
	return b.failureResult(culprit, err)
}

// failureResult returns the result of a batch that was not committed because of err.
func (b *batch) failureResult(culprit int, err error) store.Result {
	class := b.store.Classify(err)
	var swallowed *sqlform.SwallowedError
	if class == store.ClassAborted || errors.As(err, &swallowed) { // no message caused such an error
		culprit = store.NoCulprit
	}
	return store.Result{Outcome: store.NotCommitted, Class: class, Culprit: culprit, Err: addRemedy(err, false)}
}

// Rollback implements store.Batch.
func (b *batch) Rollback(ctx context.Context) {
	switch b.state() {
	case errBusy:
		b.closeConnection()
	case nil:
		if !b.tryRollback(ctx) {
			b.closeConnection()
		}
	}
	b.end()
}

// tryRollback reports whether the server has rolled back. During the rollback, pgx calls the tracer; if the tracer
// panics, the outcome is unknown, and tryRollback returns false.
func (b *batch) tryRollback(ctx context.Context) (done bool) {
	defer func() {
		if recover() != nil {
			done = false
		}
	}()
	_, err := b.link.conn.Exec(ctx, "rollback")
	return err == nil
}

// end releases the connection to the pool. If the connection is busy or in a transaction, the pool closes the
// connection.
func (b *batch) end() {
	b.mutex.Lock()
	over, cutOff := b.released, b.connectionClosed
	b.released = true
	b.mutex.Unlock()
	if over {
		return
	}
	b.cancels.Wait()
	if cutOff || b.outdated || b.unreliable {
		_ = b.link.conn.Close(context.Background())
	}
	b.conn.Release()
}

// closeConnection closes the connection, so that the server ends the transaction.
func (b *batch) closeConnection() { b.closeConnectionAnd(func() {}) }

// closeConnectionAnd closes the connection, so that the server ends the transaction, and then calls the function do. If
// the connection was closed or released before, closeConnectionAnd does nothing. The method end cannot release the
// connection before do returns.
func (b *batch) closeConnectionAnd(do func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.released || b.connectionClosed {
		return
	}
	b.connectionClosed = true
	_ = b.pg.Conn().Close()
	do()
}

// The time limit of the cancel request for a killed batch.
const cancelTimeout = 2 * time.Second

// Kill implements store.Batch. Kill also cancels the running statement of the batch.
func (b *batch) Kill() {
	b.closeConnectionAnd(func() { b.cancels.Go(b.cancel) })
}

// cancel asks the server to cancel the running statement of this connection.
func (b *batch) cancel() {
	ctx, stop := context.WithTimeout(context.Background(), cancelTimeout)
	defer stop()
	_ = b.pg.CancelRequest(ctx)
}
