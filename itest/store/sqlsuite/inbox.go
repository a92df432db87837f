package sqlsuite

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Account is a store with an account in the same database.
type Account[Tx any] struct {
	Store store.TxStore[Tx]
	// The function Add adds an amount to the account in a handler's transaction. The function Balance reads the
	// committed balance.
	Add     func(ctx context.Context, tx Tx, amount int) error
	Balance func(t testing.TB) int
	// OneWriter is true if an open transaction blocks all other transactions.
	OneWriter bool
}

// singleSource is a source that delivers one message.
type singleSource struct {
	message *semel.Message
	settled *atomic.Int64
	fetched bool
}

func (s *singleSource) Lanes(o source.LaneObserver) { o.Given(onlyLane) }

// Info implements source.Source.
func (*singleSource) Info() source.Info { return source.Info{} }

func (s *singleSource) Flow(source.Lane, bool)      {}
func (s *singleSource) Close(context.Context) error { return nil }

var onlyLane = source.Lane{ID: "a", Epoch: 1}

func (s *singleSource) Fetch(ctx context.Context, _ source.Bound) ([]source.Delivery, error) {
	if s.fetched {
		<-ctx.Done()
		return nil, nil
	}
	s.fetched = true
	return []source.Delivery{{Message: s.message, Lane: onlyLane, Before: source.Unknown}}, nil
}

func (s *singleSource) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.settled.Add(int64(len(all)))
	return nil, nil
}

// A time that is longer than any pause in the cases that use it.
const idle = time.Second

func payment() *semel.Message {
	return &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte("p1")}}, Body: []byte(`{"amount": 100}`)}
}

// billing returns a consumer that stores messages in the inbox before its handler runs.
func (a Account[Tx]) billing(t testing.TB, handle func(context.Context, Tx, *semel.Message) error, src source.Source, idle time.Duration) *consumer.Consumer[Tx] {
	t.Helper()
	c, err := consumer.New(a.Store, handle, consumer.Config{
		Name: "billing", Source: src, Identity: identity.By("header:id"), Strategy: consumer.StrategyInbox, AckOnReceipt: true,
		Retry: consumer.RetryPolicy{MaxAttempts: 5, InitialDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond},
		Inbox: consumer.InboxPolicy{Lease: time.Second, Poll: 20 * time.Millisecond}, Timeout: 30 * time.Second, IdleExit: idle,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	must.OK(t, err)
	return c
}

// Inbox tests a store with the three faults by which systems with an inbox lost a message or doubled its
// effect (fact 16).
func Inbox[Tx any](t *testing.T, open func(t testing.TB) Account[Tx]) {
	t.Run("trap_T14_a_message_whose_handler_fails_once_is_not_taken_for_handled", func(t *testing.T) {
		a := open(t)
		source, failed := &singleSource{message: payment(), settled: &atomic.Int64{}}, false
		c := a.billing(t, func(ctx context.Context, tx Tx, _ *semel.Message) error {
			if !failed {
				failed = true
				return errors.New("the network is gone")
			}
			return a.Add(ctx, tx, 100)
		}, source, idle)
		runConsumer(t, c)
		a.expectBalance(t, 100)
		if n := c.Counts(); n.Received != 1 || n.Inbox.Waiting != 1 || n.Inbox.Applied != 1 || source.settled.Load() != 1 {
			t.Errorf("%+v, settled %d times", n, source.settled.Load())
		}
		again := a.billing(t, func(context.Context, Tx, *semel.Message) error { return errors.New("it ran") }, &singleSource{message: payment(), settled: &atomic.Int64{}}, idle)
		runConsumer(t, again)
		if n := again.Counts(); n.Duplicates != 1 || n.Inbox.Claimed != 0 {
			t.Errorf("delivered again: %+v", n)
		}
		a.expectBalance(t, 100)
	})
	t.Run("law_3_an_effect_whose_handler_fails_twice_after_it_is_there_once", func(t *testing.T) {
		a := open(t)
		tries := 0
		c := a.billing(t, func(ctx context.Context, tx Tx, _ *semel.Message) error {
			tries++
			if err := a.Add(ctx, tx, 100); err != nil || tries > 2 {
				return err
			}
			return errors.New("the mail server is gone")
		}, &singleSource{message: payment(), settled: &atomic.Int64{}}, idle)
		runConsumer(t, c)
		if a.expectBalance(t, 100); tries != 3 {
			t.Errorf("%d runs, want 3", tries)
		}
	})
	t.Run("law_5_trap_T1_trap_T2_of_a_frozen_worker_and_its_rescuer_one_commits", func(t *testing.T) { a := open(t); a.testRescue(t) })
}

// runConsumer runs a consumer until no more messages arrive.
func runConsumer[Tx any](t *testing.T, c *consumer.Consumer[Tx]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.Run(ctx); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
}

func (a Account[Tx]) expectBalance(t testing.TB, want int) {
	t.Helper()
	if got := a.Balance(t); got != want {
		t.Errorf("the balance is %d, want %d", got, want)
	}
}

// testRescue freezes a worker for longer than its lease, and lets it continue after another worker has taken
// over. If other transactions can work at the same time, the frozen worker has written its effect in an open
// transaction.
func (a Account[Tx]) testRescue(t *testing.T) {
	scope := must.Get(a.Store.Scope(t.Context(), "billing", "", 0))(t)
	receipt := []store.Mark{{Scope: scope, ID: []byte("p1"), As: store.Waiting}}
	b, _ := Begin(t, a.Store, store.TxOptions{}, receipt)
	row := store.Row{State: store.StateReceived, Message: payment()}
	if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}}); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	mine, err := a.Store.(store.Leases).Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Second})
	if err != nil || len(mine) != 1 {
		t.Fatal(mine, err)
	}
	asks := []store.Mark{{Scope: scope, ID: []byte("p1"), As: store.Applied, Claim: mine[0].Claim}}
	var frozen store.Batch[Tx]
	if !a.OneWriter {
		var verdicts []store.Verdict
		if frozen, verdicts = Begin(t, a.Store, store.TxOptions{}, asks); verdicts[0].Kind != store.Fresh {
			t.Fatal(verdicts)
		}
		must.OK(t, a.Add(t.Context(), frozen.Tx(0), 100))
	}
	nothing := &singleSource{fetched: true}
	rescuer := a.billing(t, func(ctx context.Context, tx Tx, _ *semel.Message) error { return a.Add(ctx, tx, 100) }, nothing, time.Minute)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- rescuer.Run(ctx) }()
	for ; rescuer.Counts().Inbox.Claimed == 0 && ctx.Err() == nil; <-time.After(10 * time.Millisecond) {
	}
	if a.OneWriter {
		for ; rescuer.Counts().Inbox.Applied == 0 && ctx.Err() == nil; <-time.After(10 * time.Millisecond) {
		}
		if v := Asked(t, a.Store, asks...); v[0].Kind != store.ClaimLost {
			t.Errorf("the first is told %v", v[0])
		}
	} else if r := frozen.Commit(t.Context(), store.Ending{Claims: []store.ClaimEnding{{Claim: mine[0].Claim, State: store.StateCompleted, Ran: true}}}); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
		t.Errorf("the first is told %+v", r)
	}
	for ; rescuer.Counts().Inbox.Applied == 0 && ctx.Err() == nil; <-time.After(10 * time.Millisecond) {
	}
	a.expectBalance(t, 100)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
