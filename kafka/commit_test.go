package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// requests counts requests to the brokers.
type requests struct {
	mu   sync.Mutex // guards the fields below
	of   map[kmsg.Key]int
	asks map[string]int // number of requests for the ends of logs, by partition and timestamp
}

func (w *world) countRequests() *requests {
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
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			asked := w.countRequests()
			ids := numberedIDs("m", 1, 600)
			p := w.start(count, func(k *Config) { k.CommitInterval = c.interval }, nil)
			w.trickle(ids)
			if n := p.consumer.Counts().Applied; n < 599 {
				t.Fatalf("%d of 600 are applied when the last has just come", n)
			}
			if n := asked.count(kmsg.OffsetCommit); n < c.most/2 || n > c.most {
				t.Errorf("there were %d commits for 600 settlements within a minute, not %d or a little less", n, c.most)
			}
			w.waitCommitted(time.Minute)
			w.expectOnce(ids...)
		})
	}
	inWorld(t, "trap_T96_at_once_when_the_process_leaves", 1, func(t *testing.T, w *world) {
		p := w.start(count, func(k *Config) { k.CommitInterval = time.Minute }, nil)
		w.trickle(numberedIDs("m", 1, 20))
		if err := p.leave(); err != nil || w.committedOffset(0) != 20 {
			t.Errorf("committed %d, %v", w.committedOffset(0), err)
		}
	})
	inWorld(t, "trap_T96_at_once_when_a_partition_moves", 2, func(t *testing.T, w *world) {
		w.start(count, func(k *Config) { k.CommitInterval = time.Minute }, nil)
		for _, id := range numberedIDs("m", 1, 20) {
			w.publish(0, "a"+id)
			w.publish(1, "b"+id)
			pass(100 * time.Millisecond)
		}
		heir := w.start(count, nil, nil)
		pass(20 * time.Second)
		if c := heir.consumer.Counts(); c.Deliveries != 0 {
			t.Errorf("the new owner of a partition got messages that its previous owner had settled: %+v", c)
		}
		if n := max(w.committedOffset(0), w.committedOffset(1)); n != 20 {
			t.Errorf("the partition that moved is committed at %d", n)
		}
	})
	inWorld(t, "trap_24_a_commit_that_fails_after_its_settlement_was_taken_is_told_and_tried_again", 1, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.publish(0, "first")
		w.waitCommitted(time.Minute)
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: theTopic, Err: kerr.CoordinatorLoadInProgress, Count: -1})
		w.publish(0, "second")
		w.waitUntil(time.Minute, "it is told", func() bool { ready, _ := p.consumer.Ready(); return !ready })
		if fault.Hits() == 0 {
			t.Fatal("no commit failed")
		}
		fault.Remove()
		w.waitCommitted(time.Minute)
		w.expectOnce("first", "second")
	})
}

func TestTheEndsOfLogsAreAskedOfOwnPartitions(t *testing.T) {
	inWorld(t, "trap_T96_once_a_second_and_not_of_others", 40, func(t *testing.T, w *world) {
		w.publish(0, "a")
		first := w.startSettled(func(c *Config) { c.Observe = func([]LaneState) {} })
		w.start(count, func(c *Config) { c.Observe = func([]LaneState) {} }, nil)
		w.waitUntil(time.Minute, "the partitions are assigned", func() bool { return len(first.source.lanes.all()) == 20 })
		pass(10 * time.Second)
		asked := w.countRequests()
		pass(60 * time.Second)
		asked.mu.Lock()
		defer asked.mu.Unlock()
		for what, n := range asked.asks {
			if n > 125 { // one request a second for each of the two timestamps
				t.Errorf("partition %s was requested %d times within a minute", what, n)
			}
		}
		if n := asked.of[kmsg.ListOffsets]; n > 250 || n < 100 {
			t.Errorf("there were %d requests of two processes within a minute", n)
		}
	})
}

func TestCommitsThatTheBrokerCarriesOutLate(t *testing.T) {
	inWorld(t, "trap_27_a_commit_that_timed_out_and_is_carried_out_behind_a_later_one_is_made_good", 1, func(t *testing.T, w *world) {
		var n atomic.Int32
		w.control(kmsg.OffsetCommit, func(kmsg.Request) kmsg.Response {
			if n.Add(1) == 1 {
				w.cluster.SleepControl(func() { pass(40 * time.Second) })
			}
			return nil
		})
		w.publish(0, numberedIDs("m", 1, 5)...)
		p := w.start(count, nil, func(c *settings) { c.Batch.MaxSize = 5 })
		w.waitUntil(time.Minute, "it is applied", func() bool { return w.effect("m0005") == 1 })
		w.publish(0, numberedIDs("m", 6, 100)...)
		w.waitUntil(time.Minute, "the offset has gone back", func() bool { return w.committedOffset(0) == 5 })
		w.waitCommitted(10 * time.Second)
		pass(5 * time.Minute)
		calm := n.Load()
		pass(5 * time.Minute)
		if n.Load() != calm {
			t.Errorf("%d commits were sent after everything was committed", n.Load()-calm)
		}
		w.expectOnce(numberedIDs("m", 1, 100)...)
		if c := p.consumer.Counts(); c.Duplicates != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAnEpochIsRenewedOnlyForItsOwnMember(t *testing.T) {
	given := owner{member: "m1", generation: 3}
	for name, c := range map[string]struct {
		refused owner
		gone    bool
		now     owner
		want    owner
	}{
		"case_11_of_the_member_that_was_given_the_lane": {given, false, owner{"m1", 4}, owner{"m1", 4}},
		"case_11_not_of_another_member":                 {given, false, owner{"m2", 4}, given},
		"case_11_not_of_a_lane_that_is_gone":            {given, true, owner{"m1", 4}, given},
		"case_11_not_while_the_group_accepts_it":        {owner{}, false, owner{"m1", 4}, given},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lane{owner: given, refused: c.refused, ended: c.gone}
			if l.renewEpoch(c.now); l.owner != c.want {
				t.Errorf("the owner is %+v, want %+v", l.owner, c.want)
			}
		})
	}
}

func TestPartitionsThatMoveKeys(t *testing.T) {
	inWorld(t, "trap_38_copies_of_a_key_that_moved_to_another_partition_are_duplicates", 1, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.publish(0, numberedIDs("m", 1, 20)...)
		w.waitCommitted(time.Minute)
		if _, err := kadm.NewClient(w.producer).CreatePartitions(context.Background(), 3, theTopic); err != nil {
			t.Fatal(err)
		}
		w.producer = w.client()
		w.publish(3, numberedIDs("m", 10, 40)...)
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(numberedIDs("m", 1, 40)...)
		if c := p.consumer.Counts(); c.Duplicates != 11 {
			t.Errorf("%+v", c)
		}
	})
	inWorld(t, "trap_T35_what_stands_beside_an_offset_is_short_and_does_not_grow", 5, func(t *testing.T, w *world) {
		w.start(count, func(c *Config) { c.Start = Start{Now: true} }, func(c *settings) { c.Lanes = consumer.LanesNone })
		pass(5 * time.Second)
		for p := range int32(5) {
			w.publish(p, numberedIDs(fmt.Sprint("m", p), 1, 100)...)
		}
		w.waitCommitted(time.Minute)
		for p, c := range w.cluster.GroupInfo(theGroup).Commits[theTopic] {
			if want := "semel-start/5 " + stored.KeptWord(w.cluster.TopicInfo(theTopic).TopicID); c.Metadata != want || len(want) > 64 {
				t.Errorf("partition %d has %d bytes beside its offset: %.50s", p, len(c.Metadata), c.Metadata)
			}
		}
	})
}

func TestAnOffsetIsNobodysName(t *testing.T) {
	inWorld(t, "trap_44_another_record_at_an_offset_that_was_applied_takes_effect", 1, func(t *testing.T, w *world) {
		w.publish(0, "0", "1", "2", "3")
		w.runOnce(nil)
		w.close()
		// The new leader does not have the last two records, but has other records at their offsets.
		elected := newWorld(t, 1, kfake.Ports(19093))
		elected.store = w.store
		elected.publish(0, "0", "1", "other 2", "other 3", "2")
		second := elected.start(count, nil, nil)
		elected.waitCommitted(time.Minute)
		elected.expectOnce("0", "1", "2", "3", "other 2", "other 3")
		if c := second.consumer.Counts(); c.Applied != 2 || c.Duplicates != 3 || c.Conflicts != 0 {
			t.Errorf("%+v", c)
		}
	})
	inWorld(t, "trap_45_a_topic_that_is_deleted_and_made_again_under_load_is_read_from_its_beginning", 2, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.publish(0, numberedIDs("a", 1, 50)...)
		w.publish(1, numberedIDs("b", 1, 50)...)
		w.waitUntil(time.Minute, "most messages are applied", func() bool { return w.effect("a0040") == 1 })
		w.waitCommitted(time.Minute)
		must(t, w.cluster.DeleteTopic(theTopic))
		pass(1500 * time.Millisecond)
		must(t, w.cluster.CreateTopic(theTopic, 2, nil))
		w.producer = w.client()
		w.publish(0, numberedIDs("c", 1, 80)...)
		w.publish(1, numberedIDs("b", 30, 60)...)
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(numberedIDs("a", 1, 50)...)
		w.expectOnce(numberedIDs("b", 1, 60)...)
		w.expectOnce(numberedIDs("c", 1, 80)...)
		if err := p.leave(); err != nil {
			t.Error(err)
		}
	})
	inWorld(t, "trap_46_a_mirrored_cluster_brings_everything_at_other_offsets_and_nothing_happens", 2, func(t *testing.T, w *world) {
		ids := numberedIDs("m", 1, 100)
		w.publish(0, ids[:50]...)
		w.publish(1, ids[50:]...)
		w.runOnce(nil)
		w.close()
		mirror := newWorld(t, 3, kfake.Ports(19093))
		mirror.store = w.store
		mirror.publish(2, ids...)
		mirror.publish(1, "new")
		second := mirror.start(count, nil, nil)
		mirror.waitCommitted(time.Minute)
		mirror.expectOnce(append(ids, "new")...)
		if c := second.consumer.Counts(); c.Applied != 1 || c.Duplicates != 100 {
			t.Errorf("%+v", c)
		}
	})
}
