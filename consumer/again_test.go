package consumer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

func TestASettlementThatIsTriedAgain(t *testing.T) {
	bubble(t, "what_it_settles_is_told_once", func(t *testing.T) {
		source, seen := newListSource(message("1", `{}`)), &witness{}
		refused := 0
		source.refuse = func() error {
			if refused++; refused <= 3 {
				return errTest
			}
			return nil
		}
		c := config(source)
		c.Observers = []semel.Observer{seen}
		counts := runs(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error {
			return semel.Permanent(errTest)
		}, c)
		if n := len(seen.eventsOf(semel.EventParked)); n != 1 || counts.Parked != 1 || refused < 4 {
			t.Errorf("%+v, %d events, settled at attempt %d", counts, n, refused)
		}
	})
}

func TestAHandlerOfWholeBatchesGetsTheAttempt(t *testing.T) {
	bubble(t, "each_message_has_the_number_of_its_attempt", func(t *testing.T) {
		store, source := memstore.New(), newListSource(message("1", `{}`))
		var attempts []int
		c := config(source)
		c.Retry = consumer.RetryPolicy{MaxAttempts: 5, InitialDelay: time.Second, MaxDelay: time.Second}
		running, err := consumer.NewBatch(store, func(_ context.Context, _ *memstore.Tx, ms []*semel.Message) error {
			attempts = append(attempts, ms[0].Attempt)
			if len(attempts) < 3 {
				return errors.New("not yet")
			}
			return nil
		}, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Run(t.Context()); err != nil || !slices.Equal(attempts, []int{1, 2, 3}) {
			t.Errorf("the attempts are %v: %v", attempts, err)
		}
	})
}
