package kafka

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// position returns the name under which the store has the position of a partition.
func (w *world) position(partition int32) string {
	return stored.PartitionName(theGroup, topicPartition{theTopic, partition}.lane(), w.cluster.TopicInfo(theTopic).TopicID)
}

// storedPosition returns the position that the store has for a partition.
func (w *world) storedPosition(partition int32) int64 {
	w.t.Helper()
	all, err := w.store.Offsets(context.Background(), "billing", []string{w.position(partition)})
	must(w.t, err)
	return all[0].Offset
}

// wantCommitted fails unless the group has the expected offset for a partition.
func (w *world) wantCommitted(partition int32, expected int64) {
	w.t.Helper()
	if at := w.committedOffset(partition); at != expected {
		w.t.Errorf("the group's offset is %d, not %d", at, expected)
	}
}

// wantStands fails unless the store has the expected position for partition 0.
func (w *world) wantStands(expected int64) {
	w.t.Helper()
	if at := w.storedPosition(0); at != expected {
		w.t.Errorf("the store's position is %d, not %d", at, expected)
	}
}

// restore sets the position of a partition in the store back, as if the database had been restored from a backup.
func (w *world) restore(partition int32, at int64) {
	w.t.Helper()
	must(w.t, w.store.SavePosition(context.Background(), "billing", w.position(partition), source.Position{Offset: at}))
}

// expectRefusal waits until a process ends because the store is behind the group, and checks that the error
// contains the given texts.
func (p *process) expectRefusal(t *testing.T, says ...string) {
	t.Helper()
	err := p.waitEnd(t)
	if !errors.Is(err, semel.ErrBehind) {
		t.Fatalf("the run returned: %v", err)
	}
	for _, words := range says {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("the error does not say %q: %v", words, err)
		}
	}
}

func TestAStoreThatIsBehindItsGroup(t *testing.T) {
	inWorld(t, "trap_T110_a_restored_store_is_noticed_at_the_start_with_the_figures", 2, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 20)...)
		w.runOnce(nil)
		at := w.committedOffset(0)
		if got := w.storedPosition(0); got != at {
			t.Fatalf("the store's position is %d, the group's offset %d", got, at)
		}
		w.restore(0, 7)
		w.publish(0, "later")
		again := w.start(count, nil, nil)
		again.expectRefusal(t, "partition 0: the store is at 7, the group at 20: 13 records", "semel consumers positions reset", "semel consumers positions accept")
		w.expectNoEffect("later")
		if w.committedOffset(0) != at || w.storedPosition(0) != 7 {
			t.Errorf("the group is at %d, the store at %d", w.committedOffset(0), w.storedPosition(0))
		}
	})
	inWorld(t, "trap_T110_an_empty_store_is_noticed_where_the_group_was_told_after_another", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.runOnce(nil)
		w.store = memstore.New()
		w.start(count, nil, nil).expectRefusal(t, "the store has no position, the group is at 1")
	})
	inWorld(t, "trap_105_a_store_that_fails_over_without_its_last_commits_stops_the_running_consumer", 2, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.publish(0, "a", "b", "c")
		w.publish(1, "x")
		w.waitCommitted(time.Minute)
		w.restore(0, 1)
		w.publish(1, "y")
		w.waitCommitted(time.Minute) // after the wait, the store has the position of partition 1
		w.publish(0, "d")
		p.expectRefusal(t, "partition 0: the store is at 1, the group at 3: 2 records")
		if w.committedOffset(0) != 3 || w.storedPosition(0) != 1 {
			t.Errorf("the group is at %d, the store at %d", w.committedOffset(0), w.storedPosition(0))
		}
	})
	inWorld(t, "trap_105_nothing_is_committed_of_any_partition_once_one_is_behind", 2, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.publish(0, "a", "b", "c")
		w.publish(1, "x")
		w.waitCommitted(time.Minute)
		w.restore(0, 1)
		w.produce(order(0, "d"), order(1, "y"))
		p.expectRefusal(t, "partition 0")
		if w.committedOffset(0) != 3 || w.committedOffset(1) != w.storedPosition(1) {
			t.Errorf("the group is at %d and %d, the store at %d in the latter", w.committedOffset(0), w.committedOffset(1), w.storedPosition(1))
		}
	})
	inWorld(t, "trap_T110_who_is_given_a_partition_looks_before_it_reads", 1, func(t *testing.T, w *world) {
		w.publish(0, "a", "b", "c")
		first := w.startSettled(nil)
		second := w.start(count, nil, nil)
		pass(20 * time.Second)
		w.restore(0, 1)
		owner, other := first, second
		if len(second.source.lanes.all()) > 0 {
			owner, other = second, first
		}
		_ = owner.leave()
		w.publish(0, "d")
		other.expectRefusal(t, "partition 0: the store is at 1, the group at 3")
		w.expectNoEffect("d")
	})
}

// failStore makes operations of the test's store fail. The first result contains the name of the operation that fails,
// and the second result counts the operations.
func (w *world) failStore() (at *atomic.Value, asked *atomic.Int64) {
	at, asked = &atomic.Value{}, &atomic.Int64{}
	at.Store("")
	w.store = memstore.New(memstore.Fail(func(op string) error {
		if op == at.Load() {
			asked.Add(1)
			return errors.New("the connection is gone")
		}
		return nil
	}))
	return at, asked
}

func TestAnOffsetIsCommittedAfterTheStoreHasIt(t *testing.T) {
	for name, op := range map[string]string{
		"I7_while_the_store_does_not_take_it_nothing_is_committed_and_nothing_spins": "advance-before",
		"I7_an_answer_that_is_lost_is_no_answer_and_the_next_write_goes_on":          "advance-after",
	} {
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			at, asked := w.failStore()
			p := w.start(count, nil, nil)
			w.publish(0, "a")
			w.waitCommitted(time.Minute)
			at.Store(op)
			w.publish(0, "b", "c")
			pass(time.Minute)
			if got := w.committedOffset(0); got != 1 {
				t.Errorf("the group is at %d", got)
			}
			if n := asked.Load(); n < 2 || n > 120 {
				t.Errorf("the store got %d requests in a minute", n)
			}
			at.Store("")
			w.waitCommitted(time.Minute)
			w.expectOnce("a", "b", "c")
			w.wantStands(3)
			if err := p.leave(); err != nil {
				t.Error(err)
			}
		})
	}
	inWorld(t, "trap_T110_who_is_given_a_partition_while_the_store_is_silent_notices_with_its_first_write", 1, func(t *testing.T, w *world) {
		at, _ := w.failStore()
		w.publish(0, "a", "b", "c")
		owner, other := w.start(count, nil, nil), (*process)(nil)
		w.waitCommitted(time.Minute)
		other = w.start(count, nil, nil)
		pass(20 * time.Second)
		if len(other.source.lanes.all()) > 0 {
			owner, other = other, owner
		}
		w.restore(0, 1)
		at.Store("offsets")
		_ = owner.leave()
		w.publish(0, "d")
		other.expectRefusal(t, "partition 0: the store is at 1, the group at 3")
		at.Store("")
		if w.committedOffset(0) != 3 || w.storedPosition(0) != 1 {
			t.Errorf("the group is at %d, the store at %d", w.committedOffset(0), w.storedPosition(0))
		}
	})
	inWorld(t, "I7_killed_between_the_store_and_the_group_a_process_leaves_duplicates_only", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		var running atomic.Pointer[process]
		w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			running.Load().kill()
			return nil, errors.New("the process is dead"), true
		})
		first := w.start(count, nil, nil)
		running.Store(first)
		w.waitUntil(time.Minute, "it commits", first.dead.Load)
		if w.storedPosition(0) <= max(w.committedOffset(0), 0) {
			t.Fatalf("the store's position is %d, the group's offset %d", w.storedPosition(0), w.committedOffset(0))
		}
		second := w.start(count, nil, nil)
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(numberedIDs("a", 1, 10)...)
		if c := second.consumer.Counts(); c.Duplicates == 0 || w.storedPosition(0) != 10 {
			t.Errorf("%+v, the store stands at %d", c, w.storedPosition(0))
		}
	})
	inWorld(t, "I7_who_comes_back_from_the_cold_lowers_no_position", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		first := w.startSettled(nil)
		first.wire.freeze()
		second := w.start(count, nil, nil)
		pass(time.Minute)
		w.bury()
		w.publish(0, numberedIDs("b", 1, 20)...)
		w.waitCommitted(5 * time.Minute)
		at := w.storedPosition(0)
		first.wire.thaw()
		pass(time.Minute)
		if w.storedPosition(0) < at {
			t.Errorf("the store's position was %d, and is %d", at, w.storedPosition(0))
		}
		w.publish(0, "c")
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(append(numberedIDs("b", 1, 20), "a", "c")...)
		for _, p := range []*process{first, second} {
			if err := p.leave(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWhatCannotBeKnownOfAStore(t *testing.T) {
	inWorld(t, "I7_an_offset_that_a_person_has_set_is_named_and_obeyed", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.runOnce(nil)
		w.publish(0, "damaged", "b")
		w.commitFor(theGroup, 2)
		var log strings.Builder
		again := w.startSettled(func(c *Config) { c.Logger = logTo(&log) })
		_ = again.leave()
		w.expectOnce("a", "b")
		w.expectNoEffect("damaged")
		logSays(t, &log, "store=1 at=2", 1, 1)
		w.wantStands(3)
	})
	inWorld(t, "I7_where_no_position_was_ever_kept_it_is_said_once_that_nothing_can_be_known", 1, func(t *testing.T, w *world) {
		w.publish(0, "a", "b")
		w.commitFor(theGroup, 1) // a commit without metadata, as by an older release
		var log strings.Builder
		w.runOnce(func(c *Config) { c.Logger = logTo(&log) })
		w.expectOnce("b")
		logSays(t, &log, "cannot be known before the first commit", 1, 1)
		w.wantStands(2)
	})
	inWorld(t, "trap_45_a_topic_that_is_created_anew_has_positions_of_its_own", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 30)...)
		w.runOnce(nil)
		former := w.position(0)
		w.recreateTopic(1)
		w.publish(0, "b")
		again := w.startSettled(nil)
		w.expectOnce("b")
		if got := w.storedPosition(0); got != 1 || w.position(0) == former {
			t.Errorf("the store stands at %d", got)
		}
		_ = again.leave()
		w.restore(0, 0)
		w.start(count, nil, nil).expectRefusal(t, "the store is at 0, the group at 1")
	})
	inWorld(t, "I7_a_group_that_is_behind_the_store_reads_again", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.runOnce(nil)
		w.commitFor(theGroup, 4)
		again := w.startSettled(nil)
		w.expectOnce(numberedIDs("a", 1, 10)...)
		if c := again.consumer.Counts(); c.Duplicates != 6 || w.storedPosition(0) != 10 {
			t.Errorf("%+v, the store stands at %d", c, w.storedPosition(0))
		}
		_ = again.leave()
		w.forgetGroup()
		last := w.startSettled(nil)
		if c := last.consumer.Counts(); c.Duplicates != 10 {
			t.Errorf("%+v", c)
		}
	})
	inWorld(t, "I7_a_store_that_keeps_no_offsets_is_no_fault", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		expectBodies(t, w.newReader(nil).take(1), "order a") // the store of this source keeps no offsets of lanes
		w.wantStands(laneoffset.None)
	})
}
