package kafka

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newUnjoinedSource returns a source whose Fetch was not called yet.
func newUnjoinedSource(t testing.TB, change func(*Config)) *Source {
	t.Helper()
	c := quiet(Config{Brokers: []string{"127.0.0.1:1"}, Topics: []string{theTopic}, Group: theGroup})
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	must(t, err)
	return s
}

// withLane returns a source with one lane, whose Fetch was not called yet.
func withLane(t testing.TB, change func(*Config)) (*Source, *lane) {
	t.Helper()
	s, l := newUnjoinedSource(t, change), newLane(topicPartition{theTopic, 0}, 1)
	s.lanes.byPartition[l.topicPartition], s.lanes.order = l, []*lane{l}
	return s, l
}

func TestWhatIsHeldCounts(t *testing.T) {
	t.Run("trap_T91_lanes_go_on_when_what_is_not_settled_leaves_room", func(t *testing.T) {
		s, l := withLane(t, nil)
		s.budget.Raise(1000)
		s.budget.Hold(1000)
		s.intake.pauseOverBudget(l)
		if s.intake.resumeInBudget(s.lanes.order, false); !l.overBudget {
			t.Error("a lane continues while the limit is reached")
		}
		s.budget.Hold(-900)
		if s.intake.resumeInBudget(s.lanes.order, false); l.overBudget {
			t.Error("a lane does not continue although there is room")
		}
	})
}

func TestIdleAsksAsItReads(t *testing.T) {
	for name, uncommitted := range map[string]bool{
		"trap_T95_what_an_open_transaction_holds_is_more_where_it_is_read":   true,
		"trap_T95_what_an_open_transaction_holds_is_no_more_where_it_is_not": false,
	} {
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			w.publish(0, "before")
			open := w.begin("hangs", 0, "inside", "inside too")
			var isolation, asked atomic.Int32
			w.control(kmsg.Fetch, func(request kmsg.Request) kmsg.Response {
				if fetch := request.(*kmsg.FetchRequest); fetch.MaxBytes == 1 {
					isolation.Store(int32(fetch.IsolationLevel))
					asked.Add(1)
				}
				return nil
			})
			p := w.start(count, func(c *Config) { c.ReadUncommitted = uncommitted }, whenIdle)
			must(t, p.waitEnd(t))
			w.expectOnce("before")
			if left := p.consumer.Unfinished(); uncommitted != (len(left) == 0) {
				t.Errorf("left is %+v", left)
			}
			if uncommitted {
				w.expectOnce("inside", "inside too")
			}
			second := w.start(count, func(c *Config) { c.ReadUncommitted = uncommitted }, nil)
			w.waitUntil(patience, "it reads", func() bool { return second.firstLane().end == 3 })
			for l := range second.source.lanes.each {
				l.next, l.delivered = 0, 0
				if uncommitted {
					l.next, l.delivered = 1, 1 // the transaction begins at this offset
				}
			}
			idle, left, err := second.source.Info().Idle(t.Context())
			if idle || err != nil || len(left) > 0 || asked.Load() == 0 {
				t.Errorf("idle %t, left %+v, %v, %d requests", idle, left, err, asked.Load())
			}
			if want := map[bool]int32{true: 0, false: 1}[uncommitted]; isolation.Load() != want {
				t.Errorf("it asked with isolation %d, not %d", isolation.Load(), want)
			}
			w.finish(open, kgo.TryCommit)
		})
	}
}

func TestEndsThatAreNotAnswered(t *testing.T) {
	t.Run("trap_T95_who_reads_what_is_not_committed_is_behind_its_end_and_who_does_not_is_held_up", func(t *testing.T) {
		for _, uncommitted := range []bool{true, false} {
			s, l := withLane(t, func(c *Config) { c.ReadUncommitted = uncommitted })
			l.delivered, l.stable, l.end = 1, 1, 3
			behind, left, _ := s.progress.unfinishedLanes()
			if len(behind) == 1 != uncommitted || len(left) == 1 == uncommitted {
				t.Errorf("uncommitted is read: %t; behind is %+v, left %+v", uncommitted, behind, left)
			}
		}
	})
	t.Run("trap_T95_a_partition_that_is_left_out_of_an_answer_ends_where_it_did", func(t *testing.T) {
		s, l := withLane(t, nil)
		s.progress.noteEnds(time.Now(), map[topicPartition]int64{l.topicPartition: 2}, map[topicPartition]int64{l.topicPartition: 9}, map[topicPartition]int64{l.topicPartition: 7})
		for range 2 {
			if l.delivered != 2 || l.end != 9 || l.stable != 7 {
				t.Errorf("the lane begins at %d, ends at %d and is stable up to %d", l.delivered, l.end, l.stable)
			}
			s.progress.noteEnds(time.Now(), nil, map[topicPartition]int64{}, nil)
		}
		if behind, left, _ := s.progress.unfinishedLanes(); len(behind) != 1 || behind[0].offset != 2 {
			t.Errorf("behind is %+v, left %+v", behind, left)
		}
	})
}

// lag returns the lag of partition 0: the number of offsets that are not committed.
func (s *laneWatch) lag() int64 {
	last := s.stateOf(0)
	return last.End - last.Committed
}

// In this test the consumer polls nothing, so no fetch returns the new ends of logs.
func TestTheLagOfAConsumerThatTakesNothingGrows(t *testing.T) {
	grows := func(w *world, told *laneWatch, to int64) {
		w.t.Helper()
		w.publish(0, numberedIDs("later", int(to)-29, int(to))...)
		w.waitUntil(5*time.Second, "the lag has grown", func() bool { return told.lag() == to })
	}
	bubble(t, "I0_while_operators_have_it_paused", func(t *testing.T) {
		w, told := newWorld(t, 1), &laneWatch{}
		w.start(count, func(c *Config) { c.Observe = told.observe }, nil)
		w.publish(0, "first")
		w.waitCommitted(time.Minute)
		must(t, w.store.Pause(t.Context(), "billing", true, store.Act{Who: "dana", Why: "a release"}))
		pass(time.Minute)
		grows(w, told, 30)
		pass(10 * time.Minute)
		grows(w, told, 60)
		w.expectNoEffect("later0001")
		must(t, w.store.Pause(t.Context(), "billing", false, store.Act{Who: "dana", Why: "it is out"}))
		w.waitUntil(time.Minute, "nothing is behind", func() bool { return told.lag() == 0 })
	})
	bubble(t, "I0_while_the_store_is_down", func(t *testing.T) {
		w, told := newWorld(t, 1), &laneWatch{}
		p := w.start(count, func(c *Config) { c.Observe = told.observe }, nil)
		w.publish(0, "first")
		w.waitCommitted(time.Minute)
		p.dead.Store(true)
		grows(w, told, 30)
		pass(10 * time.Minute)
		grows(w, told, 60)
		p.dead.Store(false)
		w.waitUntil(10*time.Minute, "nothing is behind", func() bool { return told.lag() == 0 })
	})
}

// stateRecorder collects the states that Observe got.
type stateRecorder struct {
	mu  sync.Mutex // guards all
	all []LaneState
	new chan struct{}
}

func (s *stateRecorder) observe(told []LaneState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, told...)
	close(s.new)
	s.new = make(chan struct{})
}

// await waits for a state that satisfies a condition.
func (s *stateRecorder) await(t testing.TB, what string, met func(LaneState) bool) {
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
		seen := &stateRecorder{new: make(chan struct{})}
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
		seen := &stateRecorder{new: make(chan struct{})}
		config.Observe = seen.observe
		open, err := kgo.NewClient(kgo.SeedBrokers(config.Brokers...), kgo.TransactionalID("hangs"), kgo.DisableClientMetrics())
		must(t, err)
		defer open.Close()
		must(t, open.BeginTransaction())
		must(t, open.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("held up")}).FirstErr())
		put(t, c, "orders", 0, "behind it")
		r := read(t, config)
		stop := r.keepFetching(func(got []source.Delivery) { r.ack(got...) })
		defer stop()
		seen.await(t, "it is held up", func(s LaneState) bool { return s.HeldUp && s.Delivered == 0 && s.End == 2 })
		must(t, open.EndTransaction(t.Context(), kgo.TryCommit))
		seen.await(t, "it goes on", func(s LaneState) bool { return !s.HeldUp && s.Committed == 3 })
	})
}
