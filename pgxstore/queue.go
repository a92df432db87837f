package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// Queue collects the statements of one message. After the handlers of the batch have returned, all statements are sent
// together, in order. If a statement fails, the failure counts as an attempt of the message that queued the statement,
// and the batch rolls back. A handler must not use its Queue after the handler has returned.
type Queue struct {
	to   queueing
	mark int
}

// queueing receives the statements of a Queue. The implementations are an open batch, and a claimed row whose
// transaction begins later.
type queueing interface {
	take(mark int, r *request)
	// announceRead announces a callback that reads rows, and the method call runs the callback.
	announceRead()
	call(mark int, read func(pgx.Rows) error, rows pgx.Rows) error
	// The method err returns an error if no further statements are accepted.
	err() error
}

// Exec queues a statement without reading its result.
func (q *Queue) Exec(sql string, args ...any) { q.to.take(q.mark, &request{sql: sql, args: args}) }

// ExecOne queues an insert, update or delete that must change exactly one row. If the statement changes no row or
// several rows, the message ends as after semel.PreconditionFailed. The server checks the number of rows; this check
// takes no round trip, but costs the server about as much as the statement itself. The statement must not have
// RETURNING, and must not begin with a WITH that changes rows. Use Query for statements with RETURNING, for a WITH that
// changes rows, and for MERGE.
func (q *Queue) ExecOne(sql string, args ...any) {
	q.to.take(q.mark, &request{sql: sql, args: args, oneRow: true, text: sql})
}

// ExecOneOr does the same as ExecOne, but with another error, for example one made by semel.Park: if the statement does
// not change exactly one row, the message ends with err.
func (q *Queue) ExecOneOr(err error, sql string, args ...any) {
	q.to.take(q.mark, &request{sql: sql, args: args, oneRow: true, text: sql, unmet: err})
}

// Query queues a statement with rows. Pass the function that reads the rows to Query.Do.
func (q *Queue) Query(sql string, args ...any) *Query {
	r := &request{sql: sql, args: args}
	q.to.take(q.mark, r)
	return &Query{request: r, queue: q}
}

// Err returns an error if the batch accepts no further statements. After the first error of Err, queued statements are
// never sent.
func (q *Queue) Err() error { return q.to.err() }

// Query is a queued statement with rows to read.
type Query struct {
	request *request
	queue   *Queue
}

// Do sets the function that reads the rows. The function runs after the handlers of the whole batch, when the rows have
// arrived and before COMMIT is sent. The function may queue more statements, which are sent next. An error of the
// function counts as an error of the message's handler. The handler's timeout applies: if the function runs longer, the
// connection is closed, and the worker stays busy until the function returns. The function must not keep the rows.
func (q *Query) Do(read func(rows pgx.Rows) error) {
	q.request.read = func(rows pgx.Rows) error { return q.queue.to.call(q.queue.mark, read, rows) }
	q.queue.to.announceRead()
}

// queuedBatch is a batch whose handlers queue their statements.
type queuedBatch struct {
	*batch
	statements []endStatement
	queued     int  // number of queued statements
	reads      bool // true if a callback reads rows
	ender      int  // index of the message whose handler tried to end the transaction
	begins     func(mark int) (ended func())
}

// take implements queueing. If a statement would end the transaction, the batch fails; see sendable.
func (b *queuedBatch) take(mark int, r *request) {
	if r.oneRow {
		r.sql = b.oneRowText(r.text)
	}
	if !b.endAttempted && sqltext.Postgres().Ends(r.sql) {
		b.endAttempted, b.ender = true, mark
	}
	r.limited = true
	b.statements = append(b.statements, endStatement{r, mark})
	b.queued++
}

// announceRead implements queueing.
func (b *queuedBatch) announceRead() { b.reads = true }

// err implements queueing.
func (b *queuedBatch) err() error {
	if b.endAttempted {
		return errEnded
	}
	return b.state()
}

// OnCallback implements admin.QueuedStatements.
func (b *queuedBatch) OnCallback(begin func(mark int) (ended func())) { b.begins = begin }

// Queued implements admin.QueuedStatements.
func (b *queuedBatch) Queued() int { return b.queued }

// Tx implements store.Batch.
func (b *queuedBatch) Tx(i int) *Queue { return &Queue{to: b, mark: i} }

// Commit implements store.Batch. The queued statements are sent with COMMIT. If a callback reads rows, the statements
// are sent before COMMIT.
func (b *queuedBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.reads && !b.hasGuard { // effects will be written before COMMIT is sent
		b.hasGuard = true
		b.statements = slices.Insert(b.statements, 0, endStatement{&request{sql: b.store.sql.Guard, ownTables: true}, store.NoCulprit})
	}
	last, culprit, err := b.endStatements(e)
	if err != nil {
		return b.fail(ctx, culprit, err)
	}
	for round := 0; b.reads && !b.endAttempted; round++ {
		if round == mostRounds {
			return b.fail(ctx, b.reader(), errEndless)
		}
		if culprit, err := b.read(ctx); err != nil {
			return b.fail(ctx, culprit, err)
		}
	}
	if b.endAttempted {
		return b.fail(ctx, b.ender, errEnded)
	}
	return b.commit(ctx, append(b.statements, last...))
}

// read sends the queued statements and runs the callbacks. Callbacks may queue more statements.
func (b *queuedBatch) read(ctx context.Context) (culprit int, err error) {
	if err := b.state(); err != nil {
		return store.NoCulprit, err
	}
	statements := b.statements
	b.statements, b.reads = nil, false
	requests := make([]*request, len(statements))
	for i := range statements {
		requests[i] = statements[i].request
	}
	failed, err := b.exchange(ctx, requests)
	err = b.noteError(ctx, err)
	for i := range statements {
		refusal := requests[i].refusal
		switch {
		case errors.Is(refusal, errSlow): // also if the connection was closed because of the timeout
			return statements[i].mark, &handlerError{refusal, store.ClassRetry}
		case refusal != nil && (i != failed || !b.pg.IsClosed()):
			return statements[i].mark, &handlerError{refusal, b.ClassifyHandler(ctx, refusal)}
		case i == failed && err != nil: // later statements failed only because this statement failed
			return statements[i].mark, statements[i].convertError(b.store, err)
		}
	}
	return store.NoCulprit, err
}

// The maximum number of rounds in which the callbacks of a batch may queue statements with further callbacks. Without
// the limit mostRounds, a callback that always queues a statement with itself as callback would block its lane forever.
const mostRounds = 100

var errEndless = &storeError{"the callbacks of a queue", store.ClassPermanent,
	fmt.Errorf("after %d rounds they still queue statements with callbacks; end the chain", mostRounds)}

var (
	errGoexit = errors.New("the callback ended its goroutine (runtime.Goexit)")
	errSlow   = errors.New("the callback ran longer than the handler's timeout")
)

// call runs a callback like a handler: a panic, runtime.Goexit and a timeout are failures of its message. The callback
// has a goroutine of its own, so that Goexit does not end the goroutine of the batch. If the callback does not return
// in time, the consumer closes the connection. The method call still waits for the callback, because the callback may
// be using the rows.
func (b *queuedBatch) call(mark int, read func(pgx.Rows) error, rows pgx.Rows) error {
	began := time.Now()
	ended := func() {}
	if b.begins != nil {
		ended = b.begins(mark)
	}
	err := errGoexit
	var running worker.Group
	running.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("the callback panicked: %v\n%s", value, debug.Stack())
			}
		}()
		err = read(rows)
	})
	running.Wait()
	ended()
	late := b.statement > 0 && time.Since(began) > b.statement
	if late && (err == nil || b.state() == errCut) {
		return errSlow
	}
	return legible.Error(err, func(d *semel.HandlerError, readable error) error {
		return &semel.HandlerError{Decision: d.Decision, After: d.After, Reason: d.Reason, Err: readable}
	})
}

// reader returns the index of the message that queued the last statement with a callback.
func (b *queuedBatch) reader() int {
	mark := store.NoCulprit
	for _, s := range b.statements {
		if s.read != nil {
			mark = s.mark
		}
	}
	return mark
}
