package kafka

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// unjoined is a source that nobody has fetched from.
func unjoined(t testing.TB, change func(*Config)) *Source {
	t.Helper()
	c := quiet(Config{Brokers: []string{"127.0.0.1:1"}, Topics: []string{theTopic}, Group: theGroup})
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsHeldCounts(t *testing.T) {
	t.Run("trap_T91_lanes_go_on_when_what_is_not_settled_leaves_room", func(t *testing.T) {
		s := unjoined(t, nil)
		l := newLane(topicPartition{theTopic, 0}, 1)
		s.lanes.order = append(s.lanes.order, l)
		s.budget.Raise(1000)
		s.budget.Hold(1000)
		s.intake.pauseOverBudget(l)
		if s.intake.resumeInBudget(s.lanes.order, false); !l.overBudget {
			t.Error("a lane goes on while the bound is reached")
		}
		s.budget.Hold(-900)
		if s.intake.resumeInBudget(s.lanes.order, false); l.overBudget {
			t.Error("a lane does not go on although there is room")
		}
	})
}

func TestIdleAsksAsItReads(t *testing.T) {
	for name, uncommitted := range map[string]bool{
		"trap_T95_what_an_open_transaction_holds_is_more_where_it_is_read":   true,
		"trap_T95_what_an_open_transaction_holds_is_no_more_where_it_is_not": false,
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.publish(0, "before")
			open := w.begin("hangs", 0, "inside", "inside too")
			var isolation, asked atomic.Int32
			w.cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
				w.cluster.KeepControl()
				if fetch := request.(*kmsg.FetchRequest); fetch.MaxBytes == 1 {
					isolation.Store(int32(fetch.IsolationLevel))
					asked.Add(1)
				}
				return nil, nil, false
			})
			p := w.start(count, func(c *Config) { c.ReadUncommitted = uncommitted }, whenIdle)
			if err := p.ends(t); err != nil {
				t.Error(err)
			}
			w.once("before")
			if left := p.consumer.Unfinished(); uncommitted != (len(left) == 0) {
				t.Errorf("left is %+v", left)
			}
			if uncommitted {
				w.once("inside", "inside too")
			}
			second := w.start(count, func(c *Config) { c.ReadUncommitted = uncommitted }, nil)
			w.until(patience, "it reads", func() bool {
				second.source.lanes.mu.Lock()
				defer second.source.lanes.mu.Unlock()
				return len(second.source.lanes.order) == 1 && second.source.lanes.order[0].end == 3
			})
			second.source.lanes.mu.Lock()
			l := second.source.lanes.order[0]
			l.next, l.delivered = 0, 0
			if uncommitted {
				l.next, l.delivered = 1, 1 // where the transaction begins
			}
			second.source.lanes.mu.Unlock()
			idle, left, err := second.source.Info().Idle(t.Context())
			if idle || err != nil || len(left) > 0 || asked.Load() == 0 {
				t.Errorf("idle %t, left %+v, %v, %d questions", idle, left, err, asked.Load())
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
			s := unjoined(t, func(c *Config) { c.ReadUncommitted = uncommitted })
			l := newLane(topicPartition{theTopic, 0}, 1)
			s.lanes.order = append(s.lanes.order, l)
			l.delivered, l.stable, l.end = 1, 1, 3
			behind, left, _ := s.progress.remains()
			if len(behind) == 1 != uncommitted || len(left) == 1 == uncommitted {
				t.Errorf("uncommitted is read: %t; behind is %+v, left %+v", uncommitted, behind, left)
			}
		}
	})
	t.Run("trap_T95_a_partition_that_is_left_out_of_an_answer_ends_where_it_did", func(t *testing.T) {
		s := unjoined(t, nil)
		l := newLane(topicPartition{theTopic, 0}, 1)
		s.lanes.order = append(s.lanes.order, l)
		s.progress.noteEnds(time.Now(), map[topicPartition]int64{l.topicPartition: 2}, map[topicPartition]int64{l.topicPartition: 9}, map[topicPartition]int64{l.topicPartition: 7})
		for range 2 {
			if l.delivered != 2 || l.end != 9 || l.stable != 7 {
				t.Errorf("it begins at %d, ends at %d and is stable up to %d", l.delivered, l.end, l.stable)
			}
			s.progress.noteEnds(time.Now(), nil, map[topicPartition]int64{}, nil)
		}
		if behind, left, _ := s.progress.remains(); len(behind) != 1 || behind[0].at != 2 {
			t.Errorf("behind is %+v, left %+v", behind, left)
		}
	})
}
