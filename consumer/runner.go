package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// way says what makes the effects of a consumer happen once. The constructor chooses it, and
// with it the runner of the consumer's flights.
type way uint8

// The ways.
const (
	// byTransaction: the marker commits with the handler's writes (New, NewBatch, NewSteps).
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
	begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (begun[Tx], error)
}

// begun is a flight that has begun.
type begun[Tx any] struct {
	attempt[Tx]
	// verdicts are one for each mark.
	verdicts []store.Verdict
	// extended reports that the leases of the flight's claims were extended.
	extended bool
}

// attempt runs the handlers of a flight, and commits or rolls back. One goroutine calls its
// methods, except kill.
type attempt[Tx any] interface {
	// run runs the handler of a job, or returns the error that the message fails with instead.
	run(j *job[Tx]) error
	// commit ends the flight and records what its handlers did.
	commit(ctx context.Context, e store.Ending) outcome
	// rollback ends the flight and discards what can be discarded: a call cannot.
	rollback(ctx context.Context)
	// kill closes the connection of a handler that does not return, if there is one.
	kill()
	// classify returns the class of a handler's error.
	classify(ctx context.Context, err error) store.Class
	// transaction returns the open batch of the store, nil if none is open. The engine asks this
	// batch for the optional features of batches.
	transaction() any
	// queued returns how many statements and functions of handlers commit will run.
	queued() int
}

// outcome is the result of commit.
type outcome struct {
	store.Result
	// withoutKey is the reason why no key records the effect; nil if a key does, or none is needed.
	withoutKey error
	// notReEmitted reports that an intent was not sent again, because the other side may have
	// forgotten its key.
	notReEmitted bool
}

// job is a handler that is to run: for one message, or for all of a batch.
type job[Tx any] struct {
	ctx context.Context
	// message is the message of the handler; of a handler of whole batches the first one.
	message *semel.Message
	// mark is the index of the message's mark, store.All for a handler of whole batches.
	mark int
	// row is the claimed row of the message in inbox, nil if the message has no row.
	row   *heldRow
	inbox *inbox
	// lost cancels ctx: another process holds the claim, or may hold it.
	lost context.CancelCauseFunc
	// handle runs the handler.
	handle func(tx Tx) error
}

// left returns how long the lease of the row still lasts at least.
func (j *job[Tx]) left() time.Duration { return j.inbox.keeper.left(j.row) }

// leave reports that the claim is lost and returns the error of the message: nobody may call.
func (j *job[Tx]) leave() error {
	j.lost(store.ErrClaimLost)
	return store.ErrClaimLost
}

// anyStore is what the engine needs of every store. It asks the store for optional features by
// assertion.
type anyStore interface {
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	Classify(err error) store.Class
}

// transactions runs each flight in one transaction of the store. Without rows, the store has no
// inbox, and no commit has rows for it.
type transactions[Tx any] struct {
	store store.TxStore[Tx]
	rows  bool
}

func (r transactions[Tx]) begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (begun[Tx], error) {
	b, verdicts, err := r.store.Begin(ctx, o, marks)
	if err != nil {
		return begun[Tx]{}, err
	}
	return begun[Tx]{attempt: &transacted[Tx]{store: r.store, batch: b, rows: r.rows}, verdicts: verdicts}, nil
}

// transacted is an open transaction of the store, with its marks.
type transacted[Tx any] struct {
	store store.TxStore[Tx]
	batch store.Batch[Tx]
	rows  bool // the store has an inbox
}

func (t *transacted[Tx]) run(j *job[Tx]) error { return j.handle(t.batch.Tx(j.mark)) }

func (t *transacted[Tx]) commit(ctx context.Context, e store.Ending) outcome {
	if !t.rows {
		e.Rows = nil
	}
	return outcome{Result: t.batch.Commit(ctx, e)}
}

func (t *transacted[Tx]) rollback(ctx context.Context) { t.batch.Rollback(ctx) }
func (t *transacted[Tx]) kill()                        { t.batch.Kill() }
func (t *transacted[Tx]) transaction() any             { return t.batch }
func (t *transacted[Tx]) queued() int                  { return queuedIn(t.batch) }

func (t *transacted[Tx]) classify(ctx context.Context, err error) store.Class {
	return classifyHandler(ctx, t.store, t.batch, err)
}

// receipt is a transaction in which no handler runs: it receives messages, or sets them aside.
type receipt[Tx any] struct{ transacted[Tx] }

func (*receipt[Tx]) run(*job[Call]) error { return errCallUnclaimed }

var errCallUnclaimed = errors.New("semel: a call needs a claim")

// beginReceipt begins a flight that runs no handler.
func beginReceipt[Tx any](ctx context.Context, st store.TxStore[Tx], o store.TxOptions, marks []store.Mark) (begun[Call], error) {
	b, verdicts, err := st.Begin(ctx, o, marks)
	if err != nil {
		return begun[Call]{}, err
	}
	return begun[Call]{attempt: &receipt[Tx]{transacted[Tx]{st, b, true}}, verdicts: verdicts}, nil
}

// queuedIn returns how many statements a batch sends when it commits.
func queuedIn(batch any) int {
	if q, queues := batch.(store.QueuedStatements); queues {
		return q.Queued()
	}
	return 0
}

// untransacted is embedded by attempts without an open transaction. The error of a handler is
// then never the store's.
type untransacted struct{}

func (untransacted) transaction() any                            { return nil }
func (untransacted) queued() int                                 { return 0 }
func (untransacted) kill()                                       {}
func (untransacted) rollback(context.Context)                    {}
func (untransacted) classify(context.Context, error) store.Class { return store.ClassRetry }
