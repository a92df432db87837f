package consumer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// mayBeLost returns a configuration for calls without a key, which are not repeated.
func mayBeLost() consumer.Config {
	c := callsOut()
	c.Provider = consumer.Provider{Window: consumer.WindowNever, OnUnknown: consumer.ActionDiscard}
	return c
}

func TestCallsThatMayBeLost(t *testing.T) {
	lost := func(t *testing.T, st *memstore.Store, counts semel.Counts) {
		t.Helper()
		r := row(t, st, "m0")
		if counts.Inbox.Discarded != 1 || r.State != store.StateDiscarded || r.Reason != semel.ReasonOutcomeUnknown || r.Attempts > 1 || !r.UnknownOutcome() {
			t.Errorf("%+v, %+v", counts.Inbox, r)
		}
	}
	bubble(t, "E5_a_call_that_died_with_its_process_is_not_made_again_and_counted", func(t *testing.T) {
		st, p := diedCalling(t, time.Minute), provides{}
		lost(t, st, runsLeased(t, st, p.call, mayBeLost()))
		if p.calls != 0 {
			t.Errorf("%d calls", p.calls)
		}
	})
	bubble(t, "E5_one_whose_answer_is_lost_is_not_made_again_and_counted", func(t *testing.T) {
		st, calls, lastTry := memstore.New(), 0, mayBeLost()
		lastTry.Retry.MaxAttempts = 1
		fillInbox(t, st, 1)
		lost(t, st, runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			calls++
			return semel.Unknown(io.EOF)
		}, lastTry))
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
	bubble(t, "E5_one_that_was_refused_is_made_again", func(t *testing.T) {
		st, calls := memstore.New(), 0
		fillInbox(t, st, 1)
		counts := runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			if calls++; calls == 1 {
				return semel.Retry(io.EOF)
			}
			return nil
		}, mayBeLost())
		if calls != 2 || counts.Inbox.Applied != 1 {
			t.Errorf("%d calls, %+v", calls, counts.Inbox)
		}
	})
	t.Run("an_end_that_is_none_of_the_two_is_refused", func(t *testing.T) {
		c := mayBeLost()
		c.Provider.OnUnknown = consumer.ActionHalt
		_, err := consumer.NewLeased(memstore.New(), func(context.Context, consumer.Call, *semel.Message) error { return errors.New("never") }, c, faults.Plan{})
		if err == nil || !strings.Contains(err.Error(), "Provider.OnUnknown") {
			t.Error(err)
		}
	})
}
