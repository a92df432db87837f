package kafka

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// requests counts what brokers were asked.
type requests struct {
	mu   sync.Mutex // guards the rest
	of   map[kmsg.Key]int
	asks map[string]int // for ends of logs, by partition and what was asked
}

func (w *world) counted() *requests {
	r := &requests{of: map[kmsg.Key]int{}, asks: map[string]int{}}
	for _, key := range []kmsg.Key{kmsg.OffsetCommit, kmsg.ListOffsets} {
		w.cluster.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.of[key]++
			if list, ok := request.(*kmsg.ListOffsetsRequest); ok {
				for _, topic := range list.Topics {
					for _, p := range topic.Partitions {
						r.asks[fmt.Sprint(p.Partition, " at ", p.Timestamp)]++
					}
				}
			}
			return nil, nil, false
		})
	}
	return r
}

func (r *requests) count(key kmsg.Key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[key]
}

// trickle publishes ten messages a second.
func (w *world) trickle(ids []string) {
	w.t.Helper()
	for _, id := range ids {
		w.publish(0, id)
		pass(100 * time.Millisecond)
	}
}

func TestOffsetsOfATrickleAreCommittedNowAndThen(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		most     int
	}{
		"trap_T96_about_once_a_second_by_default": {0, 65},
		"I6_or_as_often_as_the_policy_says":       {10 * time.Second, 8},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			asked := w.counted()
			ids := numbered("m", 1, 600)
			p := w.start(count, func(k *Config) { k.CommitInterval = c.interval }, nil)
			w.trickle(ids)
			if n := p.consumer.Counts().Applied; n < 599 {
				t.Fatalf("%d of 600 are applied when the last has just come", n)
			}
			if n := asked.count(kmsg.OffsetCommit); n < c.most/2 || n > c.most {
				t.Errorf("there were %d commits for 600 settlements within a minute, not %d or a little less", n, c.most)
			}
			w.settles(time.Minute)
			w.once(ids...)
		})
	}
	bubble(t, "trap_T96_at_once_when_the_process_leaves", func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.start(count, func(k *Config) { k.CommitInterval = time.Minute }, nil)
		w.trickle(numbered("m", 1, 20))
		if err := p.leave(); err != nil || w.committed(0) != 20 {
			t.Errorf("committed %d, %v", w.committed(0), err)
		}
	})
	bubble(t, "trap_T96_at_once_when_a_partition_moves", func(t *testing.T) {
		w := newWorld(t, 2)
		w.start(count, func(k *Config) { k.CommitInterval = time.Minute }, nil)
		for _, id := range numbered("m", 1, 20) {
			w.publish(0, "a"+id)
			w.publish(1, "b"+id)
			pass(100 * time.Millisecond)
		}
		heir := w.start(count, nil, nil)
		pass(20 * time.Second)
		if c := heir.consumer.Counts(); c.Deliveries != 0 {
			t.Errorf("the heir of a partition was delivered what its former owner had settled: %+v", c)
		}
		if n := max(w.committed(0), w.committed(1)); n != 20 {
			t.Errorf("the partition that moved is committed at %d", n)
		}
	})
	bubble(t, "trap_24_a_commit_that_fails_after_its_settlement_was_taken_is_told_and_tried_again", func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.start(count, nil, nil)
		w.publish(0, "first")
		w.settles(time.Minute)
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: theTopic, Err: kerr.CoordinatorLoadInProgress, Count: -1})
		w.publish(0, "second")
		w.until(time.Minute, "it is told", func() bool { ready, _ := p.consumer.Ready(); return !ready })
		if fault.Hits() == 0 {
			t.Fatal("no commit failed")
		}
		fault.Remove()
		w.settles(time.Minute)
		w.once("first", "second")
	})
}

func TestTheEndsOfLogsAreAskedOfOwnPartitions(t *testing.T) {
	bubble(t, "trap_T96_once_a_second_and_not_of_others", func(t *testing.T) {
		w := newWorld(t, 40)
		w.publish(0, "a")
		first := w.start(count, func(c *Config) { c.Observe = func([]LaneState) {} }, nil)
		w.settles(time.Minute)
		w.start(count, func(c *Config) { c.Observe = func([]LaneState) {} }, nil)
		w.until(time.Minute, "the partitions are shared", func() bool {
			first.source.lanes.mu.Lock()
			defer first.source.lanes.mu.Unlock()
			return len(first.source.lanes.order) == 20
		})
		pass(10 * time.Second)
		asked := w.counted()
		pass(60 * time.Second)
		asked.mu.Lock()
		defer asked.mu.Unlock()
		for what, n := range asked.asks {
			if n > 125 { // two ways to end, once a second
				t.Errorf("partition %s was asked for %d times within a minute", what, n)
			}
		}
		if n := asked.of[kmsg.ListOffsets]; n > 250 || n < 100 {
			t.Errorf("there were %d requests of two processes within a minute", n)
		}
	})
}
