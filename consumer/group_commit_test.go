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

// slowLeases is a store in which each write of claims takes a while. slowLeases counts these writes, because
// each one is a transaction in a database.
type slowLeases struct {
	*memstore.Store
	starts, ends, together atomic.Int32
}

func (s *slowLeases) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	s.starts.Add(1)
	s.together.Store(max(s.together.Load(), int32(len(claims))))
	pass(time.Millisecond)
	return s.Store.StartCalls(ctx, claims, lease)
}

func (s *slowLeases) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	s.ends.Add(1)
	pass(time.Millisecond)
	return s.Store.End(ctx, all)
}

func TestCallsOfManyWorkersShareTransactions(t *testing.T) {
	bubble(t, "E3_64_workers_begin_and_end_in_few", func(t *testing.T) {
		st := &slowLeases{Store: memstore.New()}
		const n = 2000
		fillInbox(t, st.Store, n)
		c := callsOut()
		c.Workers = 64
		counts := runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			pass(time.Millisecond)
			return nil
		}, c)
		if counts.Inbox.Applied != n {
			t.Errorf("%+v", counts.Inbox)
		}
		starts, ends := st.starts.Load(), st.ends.Load()
		if starts+ends > n/3 || st.together.Load() < 16 {
			t.Errorf("%d transactions with starts and %d with ends for %d messages, at most %d together", starts, ends, n, st.together.Load())
		}
		t.Logf("%d starts, %d ends", starts, ends)
	})
	bubble(t, "case_3_of_a_call_that_took_effect_and_whose_end_is_lost_none_is_made_again", func(t *testing.T) {
		st, calls := &losesOnce{Store: memstore.New()}, 0
		fillInbox(t, st.Store, 1)
		counts := runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			calls++
			return nil
		}, callsOut())
		if r := row(t, st.Store, "m0"); calls != 1 || counts.Inbox.Applied != 1 || r.State != store.StateCompleted || r.UnknownOutcome() {
			t.Errorf("%d calls, %+v, %+v", calls, counts.Inbox, r)
		}
	})
}

// losesOnce is a store that loses the first call of End before it is carried out.
type losesOnce struct {
	*memstore.Store
	lost bool
}

func (s *losesOnce) End(ctx context.Context, all []store.ClaimEnding) ([]int, error) {
	if !s.lost {
		s.lost = true
		return nil, io.ErrUnexpectedEOF
	}
	return s.Store.End(ctx, all)
}
