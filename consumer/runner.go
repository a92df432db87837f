package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// way says what makes the effects of a consumer happen once. The constructor chooses it, and
// with it the runner of the consumer's flights.
type way uint8

// The ways.
const (
	// byTransaction: the marker commits with the handler's writes (New, NewAll, NewSteps).
	byTransaction way = iota
	// byClaim: the inbox row is claimed, the handler calls out, and the claim ends
	// (NewLeased, NewLeasedSteps).
	byClaim
	// byAnswer: as byClaim, and the claim ends in the transaction that applies the answer
	// (NewCalling with StrategyInbox).
	byAnswer
	// byLookup: markers are looked up, the handler calls out, and the transaction that applies
	// the answer marks the message (NewCalling with StrategyMarker).
	byLookup
	// byKey: a leased key is claimed, the handler calls out, and the key is completed
	// (NewKeyed).
	byKey
)

// overRows reports whether handlers call out for messages of the store's inbox, one message in
// a flight.
func (w way) overRows() bool { return w == byClaim || w == byAnswer || w == byLookup }

// runner begins the flights of a consumer. It is safe for concurrent use.
type runner[Tx any] interface {
	// begin begins a flight. After an error nothing is open.
	begin(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (begun[Tx], error)
}

// begun is a flight that has begun.
type begun[Tx any] struct {
	attempt[Tx]
	// verdicts are one for each mark.
	verdicts []contract.Verdict
	// extended reports that the leases of the flight's claims were extended.
	extended bool
}

// attempt runs the handlers of a flight, and commits or rolls back. One goroutine calls its
// methods, except kill.
type attempt[Tx any] interface {
	// run runs a handler, or returns the error that the message ends with instead.
	run(j *job[Tx]) error
	commit(ctx context.Context, e contract.Ending) outcome
	rollback(ctx context.Context)
	// kill cuts the connection that a handler does not return from, if there is one.
	kill()
	// classify returns the class of a handler's error.
	classify(ctx context.Context, err error) contract.Class
	// transaction is the batch of the store that is open, nil if none is. The engine asks it
	// for the optional features of batches.
	transaction() any
	// queued is how many statements and functions of handlers commit still runs.
	queued() int
}

// outcome is what a commit came to.
type outcome struct {
	contract.Result
	// withoutKey is why an effect that was committed is recorded under no key, otherwise nil.
	withoutKey error
	// notReEmitted reports that an intent was not sent again, because the other side may have
	// forgotten its key.
	notReEmitted bool
}

// job is a handler that is to run: for one message, or for all of a batch.
type job[Tx any] struct {
	ctx context.Context
	// message is the first of a batch.
	message *semel.Message
	// mark is the index of the message's mark, contract.All for a handler of whole batches.
	mark int
	// row is the claimed row of the message in the inbox, nil if it has none.
	row   *heldRow
	inbox *inbox
	// lost ends ctx, because the claim is another's, or may be.
	lost context.CancelCauseFunc
	// handle runs the handler.
	handle func(tx Tx) error
}

// left is how long the lease of the row surely lasts.
func (j *job[Tx]) left() time.Duration { return j.inbox.keeper.left(j.row) }

// leave is the error of a claim under which nobody may call.
func (j *job[Tx]) leave() error {
	j.lost(contract.ErrClaimLost)
	return contract.ErrClaimLost
}

// anyStore is what the engine needs of every store. It asks the store for optional features by
// assertion.
type anyStore interface {
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	Classify(err error) contract.Class
}

// transactions runs each flight in one transaction of the store.
type transactions[Tx any] struct{ store contract.TxStore[Tx] }

func (r transactions[Tx]) begin(ctx context.Context, o contract.TxOptions, marks []contract.Mark) (begun[Tx], error) {
	b, verdicts, err := r.store.Begin(ctx, o, marks)
	if err != nil {
		return begun[Tx]{}, err
	}
	return begun[Tx]{attempt: &transacted[Tx]{store: r.store, batch: b}, verdicts: verdicts}, nil
}

// transacted is an open transaction of the store, with its marks.
type transacted[Tx any] struct {
	store contract.TxStore[Tx]
	batch contract.Batch[Tx]
}

func (t *transacted[Tx]) run(j *job[Tx]) error { return j.handle(t.batch.Tx(j.mark)) }

func (t *transacted[Tx]) commit(ctx context.Context, e contract.Ending) outcome {
	return outcome{Result: t.batch.Commit(ctx, e)}
}

func (t *transacted[Tx]) rollback(ctx context.Context) { t.batch.Rollback(ctx) }
func (t *transacted[Tx]) kill()                        { t.batch.Kill() }
func (t *transacted[Tx]) transaction() any             { return t.batch }
func (t *transacted[Tx]) queued() int                  { return queuedIn(t.batch) }

func (t *transacted[Tx]) classify(ctx context.Context, err error) contract.Class {
	return classifyHandler(ctx, t.store, t.batch, err)
}

// receipt is a transaction in which no handler runs: it receives messages, or sets them aside.
type receipt[Tx any] struct{ transacted[Tx] }

func (*receipt[Tx]) run(*job[Call]) error { return errCallUnclaimed }

var errCallUnclaimed = errors.New("semel: a call needs a claim")

// beginReceipt begins a flight without handlers.
func beginReceipt[Tx any](ctx context.Context, store contract.TxStore[Tx], o contract.TxOptions, marks []contract.Mark) (begun[Call], error) {
	b, verdicts, err := store.Begin(ctx, o, marks)
	if err != nil {
		return begun[Call]{}, err
	}
	return begun[Call]{attempt: &receipt[Tx]{transacted[Tx]{store, b}}, verdicts: verdicts}, nil
}

// queuedIn is how many statements wait for the commit of a batch.
func queuedIn(batch any) int {
	if q, queues := batch.(contract.Queues); queues {
		return q.Queued()
	}
	return 0
}

// untransacted is what attempts have in common while no transaction is open: a handler's error
// is never the store's.
type untransacted struct{}

func (untransacted) transaction() any                               { return nil }
func (untransacted) queued() int                                    { return 0 }
func (untransacted) kill()                                          {}
func (untransacted) rollback(context.Context)                       {}
func (untransacted) classify(context.Context, error) contract.Class { return contract.ClassRetry }
