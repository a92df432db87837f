package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// leasedkey.Keys.Do returns store.ErrClaimLost for a lost key. A handler may return this error, although no
// claim of the engine is lost.
func TestAHandlerThatReturnsErrClaimLost(t *testing.T) {
	bubble(t, "C4_its_error_is_an_attempt_as_any_other", func(t *testing.T) {
		calls := 0
		c := config(newListSource(message("1", "")))
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		c.Retry = consumer.RetryPolicy{MaxAttempts: 3, InitialDelay: time.Millisecond, MaxDelay: time.Millisecond}
		run := mustNewLeased(t, memstore.New(), func(context.Context, consumer.Call, *semel.Message) error {
			if calls++; calls > 100 {
				return nil
			}
			return fmt.Errorf("leasedkey: %w", errors.Join(errTest, store.ErrClaimLost))
		}, c)
		if err := run.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if calls == 0 || calls > 3 {
			t.Errorf("%d calls", calls)
		}
	})
}
