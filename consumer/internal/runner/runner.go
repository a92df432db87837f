// Package runner runs batches ("flights"). There is one runner for each way to make an effect happen
// once: a transaction with the marker (NewTransactions), a claim of an inbox row (NewClaims), a claim
// whose answer is applied in a transaction (NewAnswering), a lookup of the marker before the call and
// a mark after it (NewLookups), and a leased key (NewLeasedKeys).
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

// Runner begins the flights of a consumer. A Runner is safe for concurrent use.
type Runner[Tx any] interface {
	// Begin begins a flight. After an error nothing is open.
	Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (Begun[Tx], error)
}

// Begun is a flight that has begun.
type Begun[Tx any] struct {
	Attempt[Tx]
	// Verdicts has one verdict for each mark.
	Verdicts []store.Verdict
	// Extended reports that the leases of the flight's claims were extended.
	Extended bool
}

// Attempt runs the handlers of a flight, and commits or rolls back. One goroutine calls its
// methods, except Kill.
type Attempt[Tx any] interface {
	// Run runs the handler of a job, or returns the error that the message fails with instead.
	Run(j *Job[Tx]) error
	// Commit ends the flight and records what its handlers did.
	Commit(ctx context.Context, e store.Ending) Outcome
	// Rollback ends the flight and discards what can be discarded: a call cannot.
	Rollback(ctx context.Context)
	// Kill closes the connection of a handler that does not return, if there is one.
	Kill()
	// Classify returns the class of a handler's error.
	Classify(ctx context.Context, err error) store.Class
	// Transaction returns the open batch of the store, nil if none is open. The engine asks this
	// batch for the optional features of batches.
	Transaction() any
	// Queued returns how many statements and functions of handlers commit will run.
	Queued() int
}

// Outcome is the result of Commit.
type Outcome struct {
	store.Result
	// WithoutKey is the reason why no key records the effect; nil if a key does, or none is needed.
	WithoutKey error
	// NotReEmitted reports that an intent was not sent again, because the other side may have
	// forgotten its key.
	NotReEmitted bool
}

// Job is a handler that is to run: for one message, or for all of a batch.
type Job[Tx any] struct {
	Ctx context.Context
	// Message is the message of the handler; of a handler of whole batches the first one.
	Message *semel.Message
	// Mark is the index of the message's mark, store.All for a handler of whole batches.
	Mark int
	// Row is the claimed row of the message in Inbox, nil if the message has no row.
	Row   *inbox.ClaimedRow
	Inbox *inbox.Inbox
	// Lost cancels Ctx: another process holds the claim, or may hold it.
	Lost context.CancelCauseFunc
	// Handle runs the handler.
	Handle func(tx Tx) error
}

// left returns how long the lease of the row still lasts at least.
func (j *Job[Tx]) left() time.Duration { return j.Inbox.Keeper.Left(j.Row) }

// leave calls Lost and returns the error of the message. The call must not be made.
func (j *Job[Tx]) leave() error {
	j.Lost(store.ErrClaimLost)
	return store.ErrClaimLost
}

// Store is what the engine needs of every store. It asks the store for optional features by
// assertion.
type Store interface {
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	Classify(err error) store.Class
}

// transactions runs each flight in one transaction of the store. Without rows, the store has no
// inbox, and no commit has rows for it.
type transactions[Tx any] struct {
	store store.TxStore[Tx]
	rows  bool
}

// NewTransactions returns the runner of flights that are one transaction each. rows reports whether
// the store has an inbox.
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

// transacted is an open transaction of the store, with its marks.
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
func (t *transacted[Tx]) Queued() int                  { return queuedIn(t.batch) }

func (t *transacted[Tx]) Classify(ctx context.Context, err error) store.Class {
	return classifyHandler(ctx, t.store, t.batch, err)
}

// receipt is a transaction in which no handler runs: it receives messages, or sets them aside.
type receipt[Tx any] struct{ transacted[Tx] }

func (*receipt[Tx]) Run(*Job[Call]) error { return errCallUnclaimed }

var errCallUnclaimed = errors.New("semel: a call needs a claim")

// beginReceipt begins a flight that runs no handler.
func beginReceipt[Tx any](ctx context.Context, st store.TxStore[Tx], o store.TxOptions, marks []store.Mark) (Begun[Call], error) {
	b, verdicts, err := st.Begin(ctx, o, marks)
	if err != nil {
		return Begun[Call]{}, err
	}
	return Begun[Call]{Attempt: &receipt[Tx]{transacted[Tx]{st, b, true}}, Verdicts: verdicts}, nil
}

// queuedIn returns how many statements a batch sends when it commits.
func queuedIn(batch any) int {
	if q, queues := batch.(admin.QueuedStatements); queues {
		return q.Queued()
	}
	return 0
}

// untransacted is embedded by attempts without an open transaction. The error of a handler is
// then never the store's.
type untransacted struct{}

func (untransacted) Transaction() any                            { return nil }
func (untransacted) Queued() int                                 { return 0 }
func (untransacted) Kill()                                       {}
func (untransacted) Rollback(context.Context)                    {}
func (untransacted) Classify(context.Context, error) store.Class { return store.ClassRetry }
