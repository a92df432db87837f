package sqlsuite

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Emission is a store with a consumer whose duplicates cause intents to be sent again.
type Emission[Tx any] struct {
	// Store is the store of the consumer "billing". Sender is the store of the consumer that sends the
	// intents.
	Store, Sender store.TxStore[Tx]
	// ID is the id of the message.
	ID string
	// Retention is the retention policy that a store with daily partitions needs.
	Retention consumer.RetentionPolicy
	// Pass moves the times in the tables back, as if the interval for sending intents again had passed.
	Pass func(t testing.TB)
}

// Sends delivers duplicates of a message in two processes at the same time. The intents of the message must be sent
// once more, and not a third time before the interval has passed.
func (e Emission[Tx]) Sends(t *testing.T) {
	var keys sync.Map
	var calls atomic.Int64
	sends := func(want int64) {
		t.Helper()
		before := calls.Load()
		e.sender(t, func(m *semel.Message) {
			calls.Add(1)
			keys.Store(m.IntentKey("send"), string(m.Body))
		})
		if got := calls.Load() - before; got != want {
			t.Errorf("%d intents were sent, want %d", got, want)
		}
	}
	comes := func(copies int, ending source.End, want int64) {
		t.Helper()
		sent := make([]int64, 2)
		var both sync.WaitGroup
		for i := range sent {
			both.Go(func() { sent[i] = e.deliverDuplicates(t, copies, ending) })
		}
		both.Wait()
		if sent[0]+sent[1] != want {
			t.Errorf("%v intents are sent again, want %d", sent, want)
		}
	}
	e.deliverDuplicates(t, 1, source.EndApplied)
	comes(1, source.EndDuplicate, 0) // the intents were not sent yet
	sends(2)
	comes(3, source.EndDuplicate, 0)
	e.Pass(t)
	comes(100, source.EndDuplicate, 2)
	comes(1, source.EndDuplicate, 0)
	sends(2)
	comes(10, source.EndDuplicate, 0)
	sends(0)
	different := 0
	keys.Range(func(any, any) bool { different++; return true })
	if different != 2 {
		t.Errorf("two intents were sent under %d keys", different)
	}
}

// deliverDuplicates delivers duplicates of the message to a new consumer, as in a process of its own, and returns the
// number of intents that are sent again.
func (e Emission[Tx]) deliverDuplicates(t testing.TB, copies int, ending source.End) int64 {
	t.Helper()
	intents, err := consumer.NewIntents(e.Sender)
	if err != nil {
		t.Error(err)
		return 0
	}
	c, err := consumer.New(e.Store, func(ctx context.Context, tx Tx, m *semel.Message) error {
		return intents.Write(ctx, tx, m, semel.Intent{To: "mailer", Purpose: "one", Body: m.Body}, semel.Intent{To: "mailer", Purpose: "two", Body: m.Body})
	}, consumer.Config{Name: "billing", Identity: identity.By("header:id"), ReEmitIntents: true, Retention: e.Retention, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	all := make([]*semel.Message, copies)
	for i := range all {
		all[i] = &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(e.ID)}}, Body: []byte("{}")}
	}
	ended, err := c.ProcessAll(t.Context(), all)
	if err != nil {
		t.Error(err)
	}
	for _, d := range ended {
		if d.Kind != semel.Ack || d.Ending != ending {
			t.Errorf("%+v, want %v", d, ending)
		}
	}
	return c.Counts().ReEmitted
}

// sender runs the consumer that sends intents until all due intents are processed.
func (e Emission[Tx]) sender(t testing.TB, sent func(*semel.Message)) {
	t.Helper()
	c, err := consumer.NewLeased(e.Sender, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
		sent(m)
		return nil
	}, consumer.Config{Name: "mailer", Strategy: consumer.StrategyInbox, Identity: identity.CloudEvents(), Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = c.Work(t.Context())
	}
	must.OK(t, err)
}
