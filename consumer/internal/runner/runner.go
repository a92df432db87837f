// Package runner runs batches. A batch that is being processed is called a flight in the code. Each mechanism that
// makes an effect happen only once has its own runner:
//   - NewTransactions: a transaction with the marker.
//   - NewClaims: a claim of an inbox row.
//   - NewAnswering: a claim of an inbox row whose answer is applied in a transaction.
//   - NewLookups: a lookup of the marker before the call, and the marker after the call.
//   - NewLeasedKeys: a leased key.
package runner

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/inbox"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Call is the argument of handlers that call other systems, in place of a transaction.
type Call struct{}

// Runner begins the batches of a consumer. A Runner is safe for concurrent use.
type Runner[Tx any] interface {
	// Begin begins a batch. If Begin returns an error, no transaction is open.
	Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Tx], error)
}

// Begun is a batch that has begun.
type Begun[Tx any] struct {
	Attempt[Tx]
	// Verdicts contains one answer of the store for each marker.
	Verdicts []store.Verdict
	// Extended reports that the leases of the batch's claims were extended.
	Extended bool
}

// Attempt runs the handlers of a batch, and commits or rolls back. Only one goroutine calls the methods,
// except Kill.
type Attempt[Tx any] interface {
	// Run runs the handler of a job. If the handler must not run, Run returns the error of the message.
	Run(j *Job[Tx]) error
	// Commit ends the batch and records the results of its handlers.
	Commit(ctx context.Context, e store.Ending) Outcome
	// Rollback ends the batch and discards its changes. Rollback cannot undo a call to another system.
	Rollback(ctx context.Context)
	// Kill closes the connection of a handler that does not return. If there is no connection, Kill does
	// nothing.
	Kill()
	// Classify returns the class of a handler's error.
	Classify(ctx context.Context, err error) store.Class
	// Transaction returns the open batch of the store, or nil if no batch is open. The engine checks whether
	// this batch has the optional features of batches.
	Transaction() any
	// Queued returns the number of queued statements and functions that Commit will run.
	Queued() int
}

// Outcome is the result of Commit.
type Outcome struct {
	store.Result
	// WithoutKey is the reason why no key records the effect. WithoutKey is nil if a key records the effect,
	// or if no key is needed.
	WithoutKey error
	// NotReEmitted reports that an intent was not sent again, because the other system may have forgotten its
	// key.
	NotReEmitted bool
}

// Job is a call of the handler, for one message or for all messages of a batch.
type Job[Tx any] struct {
	Ctx context.Context
	// Message is the message of the handler. For a handler of whole batches, Message is the first message.
	Message *semel.Message
	// Mark is the index of the message's marker, or store.All for a handler of whole batches.
	Mark int
	// Row is the claimed row of the message in Inbox, or nil if the message has no row.
	Row   *inbox.ClaimedRow
	Inbox *inbox.Inbox
	// Lost cancels Ctx, because another process has the claim, or may have it.
	Lost context.CancelCauseFunc
	// Handle runs the handler.
	Handle func(tx Tx) error
}

// remainingLease returns the minimum time for which the lease of the row is still valid.
func (j *Job[Tx]) remainingLease() time.Duration { return j.Inbox.Keeper.Left(j.Row) }

// loseClaim calls Lost and returns store.ErrClaimLost as the error of the message. After loseClaim, the handler must
// not call the other system.
func (j *Job[Tx]) loseClaim() error {
	j.Lost(store.ErrClaimLost)
	return store.ErrClaimLost
}

// Store contains the methods that the engine needs of every store. The engine finds optional features by type
// assertion.
type Store interface {
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	Classify(err error) store.Class
}

// transactions runs each batch in one transaction of the store. If rows is false, the store has no inbox, and
// Commit passes no rows to the store.
type transactions[Tx any] struct {
	store store.TxStore[Tx]
	rows  bool
}

// NewTransactions returns the runner that runs each batch in one transaction. If the parameter rows is true, the store
// has an inbox.
func NewTransactions[Tx any](st store.TxStore[Tx], rows bool) Runner[Tx] {
	return transactions[Tx]{st, rows}
}

func (r transactions[Tx]) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Tx], error) {
	b, verdicts, err := r.store.Begin(ctx, o, marks)
	if err != nil {
		return Begun[Tx]{}, err
	}
	return Begun[Tx]{Attempt: &transacted[Tx]{store: r.store, batch: b, rows: r.rows}, Verdicts: verdicts}, nil
}

// transacted is an open transaction of the store, with its markers.
type transacted[Tx any] struct {
	store store.TxStore[Tx]
	batch store.Batch[Tx]
	rows  bool // the store has an inbox
}

func (t *transacted[Tx]) Run(j *Job[Tx]) error { return j.Handle(t.batch.Tx(j.Mark)) }

func (t *transacted[Tx]) Commit(ctx context.Context, e store.Ending) Outcome {
	if !t.rows {
		e.Rows = nil
	}
	return Outcome{Result: t.batch.Commit(ctx, e)}
}

func (t *transacted[Tx]) Rollback(ctx context.Context) { t.batch.Rollback(ctx) }
func (t *transacted[Tx]) Kill()                        { t.batch.Kill() }
func (t *transacted[Tx]) Transaction() any             { return t.batch }
func (t *transacted[Tx]) Queued() int                  { return queuedStatements(t.batch) }

func (t *transacted[Tx]) Classify(ctx context.Context, err error) store.Class {
	return classifyHandler(ctx, t.store, t.batch, err)
}

// receipt is a transaction in which no handler runs. A receipt stores received messages, or parks messages.
type receipt[Tx any] struct{ transacted[Tx] }

func (*receipt[Tx]) Run(*Job[Call]) error { return errCallUnclaimed }

var errCallUnclaimed = errors.New("semel: a call needs a claim")

// beginReceipt begins a batch that runs no handler.
func beginReceipt[Tx any](ctx context.Context, st store.TxStore[Tx], o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	b, verdicts, err := st.Begin(ctx, o, marks)
	if err != nil {
		return Begun[Call]{}, err
	}
	return Begun[Call]{Attempt: &receipt[Tx]{transacted[Tx]{st, b, true}}, Verdicts: verdicts}, nil
}

// queuedStatements returns the number of statements that a batch sends when it commits.
func queuedStatements(batch any) int {
	if q, queues := batch.(admin.QueuedStatements); queues {
		return q.Queued()
	}
	return 0
}

// untransacted is embedded by attempts without an open transaction. Without an open transaction, the store cannot have
// caused the handler's error.
type untransacted struct{}

func (untransacted) Transaction() any                            { return nil }
func (untransacted) Queued() int                                 { return 0 }
func (untransacted) Kill()                                       {}
func (untransacted) Rollback(context.Context)                    {}
func (untransacted) Classify(context.Context, error) store.Class { return store.ClassRetry }
