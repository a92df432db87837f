package consumer_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// unrecorded is a store that cannot record a successful end of a call. The response of unrecorded to the start of a
// call is slow.
type unrecorded struct {
	*memstore.Store
	refuses atomic.Bool
	slow    time.Duration
}

func (s *unrecorded) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	for i := range all {
		if all[i].State == store.StateCompleted && s.refuses.Load() {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return s.Store.End(ctx, all)
}

func (s *unrecorded) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	all, err := s.Store.StartCalls(ctx, claims, lease)
	if s.slow > 0 {
		pass(s.slow)
		s.slow = 0
	}
	return all, err
}

// Extend returns no valid claims while the store's responses are slow.
func (s *unrecorded) Extend(ctx context.Context, claims []store.Claim, lease time.Duration) ([]int, error) {
	if s.slow > 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return s.Store.Extend(ctx, claims, lease)
}

func TestCallsOfTheFrozen(t *testing.T) {
	bubble(t, "E3_what_took_effect_and_was_given_back_is_not_called_for_blindly", func(t *testing.T) {
		st, p, c := &unrecorded{Store: memstore.New()}, provides{}, callsOut()
		fillInbox(t, st.Store, 1)
		st.refuses.Store(true)
		c.Provider.Window = consumer.WindowNever
		ctx, stop := context.WithCancel(t.Context())
		running := mustNewLeased(t, st, func(ctx context.Context, call consumer.Call, m *semel.Message) error {
			defer stop()
			return p.call(ctx, call, m)
		}, c)
		if err := running.Run(ctx); err != nil {
			t.Log(err)
		}
		if r := row(t, st.Store, "m0"); p.calls != 1 || r.State == store.StateCompleted || !r.UnknownOutcome() {
			t.Errorf("%d calls, %+v", p.calls, r)
		}
		st.refuses.Store(false)
		runsLeased(t, st, p.call, c)
		if r := row(t, st.Store, "m0"); p.calls != 1 || r.Reason != semel.ReasonOutcomeUnknown {
			t.Errorf("%d calls, %+v", p.calls, r)
		}
	})
	bubble(t, "B11_law_5_a_call_is_not_made_when_its_lease_may_be_over", func(t *testing.T) {
		st, c := &unrecorded{Store: memstore.New()}, callsOut()
		fillInbox(t, st.Store, 1)
		c.Inbox.Lease = 3 * time.Second
		st.slow = 10 * time.Second // another process can claim the row in this time
		made, since := 0, time.Now()
		counts := runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			made++
			if late := time.Since(since); late > 10*time.Second && late < 10*time.Second+time.Millisecond {
				t.Error("the call was made after the lease had ended")
			}
			return nil
		}, c)
		if counts.Inbox.Applied != 1 || made != 1 {
			t.Errorf("%d calls, %+v", made, counts.Inbox)
		}
	})
}
