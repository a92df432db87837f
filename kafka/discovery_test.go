package kafka

import (
	"slices"
	"sync"
	"testing"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// states collects what Observe was told.
type states struct {
	mu  sync.Mutex // guards all
	all []LaneState
	new chan struct{}
}

func (s *states) observe(told []LaneState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, told...)
	close(s.new)
	s.new = make(chan struct{})
}

// await waits for a state that satisfies a condition.
func (s *states) await(t testing.TB, what string, met func(LaneState) bool) {
	t.Helper()
	ctx, cancel := contextFor(t, patience)
	defer cancel()
	for {
		s.mu.Lock()
		found, next := slices.ContainsFunc(s.all, met), s.new
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("no state of a lane in which %s; the last was %+v", what, s.all[len(s.all)-1:])
		}
	}
}

func TestTheStateOfLanesIsTold(t *testing.T) {
	t.Parallel()
	t.Run("I0_lag_and_the_oldest_unsettled", func(t *testing.T) {
		config, c := setUp(t)
		seen := &states{new: make(chan struct{})}
		config.Observe = seen.observe
		put(t, c, "orders", 0, "0", "1", "2")
		r := read(t, config)
		got := r.take(3)
		r.ack(got[0])
		seen.await(t, "two of three are unsettled", func(s LaneState) bool {
			return s.Topic == "orders" && s.Partition == 0 && s.Committed == 1 && s.Delivered == 3 && s.End == 3 && s.Unsettled == 2 && !s.Oldest.IsZero() && !s.Lost
		})
		r.ack(got[1:]...)
		r.Flow(got[0].Lane, false)
		seen.await(t, "nothing is unsettled", func(s LaneState) bool {
			return s.Committed == 3 && s.Unsettled == 0 && s.Oldest.IsZero() && s.Paused
		})
		r.close()
		seen.await(t, "the lane is lost", func(s LaneState) bool { return s.Lost && s.Committed == 3 })
	})
	t.Run("trap_42_a_transaction_that_stays_open_is_told_of", func(t *testing.T) {
		config, c := setUp(t)
		seen := &states{new: make(chan struct{})}
		config.Observe = seen.observe
		open, err := kgo.NewClient(kgo.SeedBrokers(config.Brokers...), kgo.TransactionalID("hangs"), kgo.DisableClientMetrics())
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		if err := open.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := open.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("held up")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		put(t, c, "orders", 0, "behind it")
		r := read(t, config)
		stop := r.keepFetching(func(got []source.Delivery) { r.ack(got...) })
		defer stop()
		seen.await(t, "it is held up", func(s LaneState) bool { return s.HeldUp && s.Delivered == 0 && s.End == 2 })
		if err := open.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		seen.await(t, "it goes on", func(s LaneState) bool { return !s.HeldUp && s.Committed == 3 })
	})
}
