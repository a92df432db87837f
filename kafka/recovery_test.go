package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kadm"
)

// recovery returns the Recovery that an operator uses after a restore.
func (w *world) recovery(change func(*Config)) *Recovery {
	w.t.Helper()
	c := Config{Brokers: w.cluster.ListenAddrs(), Topics: []string{theTopic}, Group: theGroup}
	if change != nil {
		change(&c)
	}
	r, err := NewRecovery(quiet(c), "billing", w.store)
	must(w.t, err)
	r.brokers.dial = w.network.DialContext
	w.t.Cleanup(r.Close)
	return r
}

func (w *world) compare(r *Recovery) []PartitionPosition {
	w.t.Helper()
	all, err := r.Compare(context.Background())
	must(w.t, err)
	return all
}

// wantPosition fails unless a partition has the given figures.
func wantPosition(t *testing.T, p PartitionPosition, standing Standing, store, group, target, missing, gone int64) {
	t.Helper()
	if p.Standing != standing || p.Store != store || p.Group != group || p.Target != target || p.Missing() != missing || p.Gone() != gone {
		t.Errorf("the position is %+v (%v), missing %d, gone %d; want %v, store %d, group %d, target %d, missing %d, gone %d",
			p, p.Standing, p.Missing(), p.Gone(), standing, store, group, target, missing, gone)
	}
}

func TestAStoreAndItsGroupAreSetRight(t *testing.T) {
	inWorld(t, "trap_141_a_reset_sets_the_group_back_and_what_is_missing_comes_again", 2, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.runOnce(nil)
		restored := w.store
		w.publish(0, numberedIDs("b", 1, 10)...)
		w.store = restoredFrom(t, restored, w, 10)
		w.runOnce(nil)
		w.store = restored // the restored store has the first ten effects and positions
		w.start(count, nil, nil).expectRefusal(t, "the store is at 10, the group at 20: 10 records")
		r := w.recovery(nil)
		all := w.compare(r)
		wantPosition(t, all[0], Behind, 10, 20, 10, 10, 0)
		wantPosition(t, all[1], NotBegun, -1, -1, 0, 0, 0)
		must(t, r.Reset(t.Context(), all[:1]))
		w.startSettled(nil)
		w.expectOnce(append(numberedIDs("a", 1, 10), numberedIDs("b", 1, 10)...)...)
		wantPosition(t, w.compare(r)[0], Level, 20, 20, 20, 0, 0)
	})
	inWorld(t, "I7_a_store_without_any_position_is_filled_from_where_the_group_began", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.runOnce(nil)
		w.store = memstore.New()
		r := w.recovery(nil)
		wantPosition(t, w.compare(r)[0], Behind, -1, 10, -1, 10, 0)
		if err := r.Reset(t.Context(), w.compare(r)); err == nil {
			t.Error("Reset without a target succeeded")
		}
		from := w.compare(r)
		from[0].Target = from[0].Start
		must(t, r.Reset(t.Context(), from))
		w.startSettled(nil)
		w.expectOnce(numberedIDs("a", 1, 10)...)
	})
	inWorld(t, "trap_T92_a_topic_made_anew_is_set_to_its_own_beginning_and_not_to_that_of_the_one_before", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("history", 1, 5)...)
		p := w.start(count, startNow, nil)
		w.waitForOffset(5)
		w.publish(0, "b")
		w.waitCommitted(time.Minute)
		_ = p.leave()
		w.recreateTopic(1)
		w.publish(0, numberedIDs("new", 1, 10)...)
		w.commitFor(theGroup, 8)
		if one := w.compare(w.recovery(nil))[0]; one.Target != 0 {
			t.Errorf("the target is %d: %+v", one.Target, one)
		}
	})
	inWorld(t, "I7_who_accepts_leaves_out_what_the_store_lacks", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.runOnce(nil)
		w.restore(0, 3)
		r := w.recovery(nil)
		must(t, r.Accept(t.Context(), w.compare(r)))
		w.publish(0, "b")
		w.startSettled(nil)
		w.expectOnce("b")
		wantPosition(t, w.compare(r)[0], Level, 11, 11, 11, 0, 0)
	})
	inWorld(t, "I7_nothing_is_set_while_the_group_has_members_nor_forward_nor_out_of_the_log", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		p := w.startSettled(nil)
		r := w.recovery(nil)
		all := w.compare(r)
		all[0].Target = 4
		if err := r.Reset(t.Context(), all); err == nil || !strings.Contains(err.Error(), "has members") || w.committedOffset(0) != 10 {
			t.Errorf("Reset returned %v, and the group is at %d", err, w.committedOffset(0))
		}
		_ = p.leave()
		for _, target := range []int64{11, laneoffset.None} {
			all[0].Target = target
			if err := r.Reset(t.Context(), all); err == nil {
				t.Errorf("the group was set to %d", target)
			}
		}
		w.restore(0, 2)
		w.deleteBefore(0, 6)
		all = w.compare(r)
		wantPosition(t, all[0], Behind, 2, 10, 2, 8, 4)
		if err := r.Reset(t.Context(), all); err == nil || !strings.Contains(err.Error(), "no longer in the log") {
			t.Errorf("it says %v", err)
		}
		all[0].Target = all[0].Start
		must(t, r.Reset(t.Context(), all))
		wantPosition(t, w.compare(r)[0], Level, 6, 6, 6, 0, 0)
	})
}

func TestARecoveryReadsWhatItsConsumerReads(t *testing.T) {
	inWorld(t, "I7_topics_that_match_a_pattern_and_none_where_none_does", 2, func(t *testing.T, w *world) {
		w.publish(1, "a")
		byPattern := func(c *Config) { c.Topics, c.TopicPattern = nil, "ord.*" }
		w.runOnce(byPattern)
		w.restore(1, 0)
		all := w.compare(w.recovery(byPattern))
		if len(all) != 2 {
			t.Fatalf("Compare returned %+v", all)
		}
		wantPosition(t, all[1], Behind, 0, 1, 0, 1, 0)
		none := func(c *Config) { c.Topics, c.TopicPattern = nil, "none" }
		if all := w.compare(w.recovery(none)); len(all) != 0 {
			t.Errorf("Compare returned %+v", all)
		}
	})
	inWorld(t, "I7_a_topic_that_is_missing_and_a_store_that_does_not_answer_are_errors", 1, func(t *testing.T, w *world) {
		at, _ := w.failStore()
		if _, err := w.recovery(func(c *Config) { c.Topics = []string{"nowhere"} }).Compare(t.Context()); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("it says %v", err)
		}
		at.Store("offsets")
		if _, err := w.recovery(nil).Compare(t.Context()); err == nil || !strings.Contains(err.Error(), "the store of consumer billing") {
			t.Errorf("it says %v", err)
		}
	})
}

// deleteBefore deletes the records of a partition before an offset.
func (w *world) deleteBefore(partition int32, at int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(theTopic, partition, at, -1)
	if _, err := kadm.NewClient(w.producer).DeleteRecords(context.Background(), offsets); err != nil {
		w.t.Fatal(err)
	}
}

// restoredFrom returns another store, as after a failover to a database that has the given position for partition 0.
func restoredFrom(t *testing.T, from *memstore.Store, w *world, at int64) *memstore.Store {
	t.Helper()
	other := memstore.New()
	if _, err := other.AdvanceOffsets(t.Context(), "billing", []laneoffset.Advance{{LaneOffset: laneoffset.LaneOffset{Lane: w.position(0), Offset: at}, Least: laneoffset.None}}); err != nil {
		t.Fatal(err)
	}
	return other
}

func TestWhatIsMissingAndGone(t *testing.T) {
	t.Run("trap_T110_no_more_is_gone_than_is_missing", func(t *testing.T) {
		for _, c := range []struct {
			p             PartitionPosition
			missing, gone int64
		}{
			{PartitionPosition{Standing: Behind, Target: 5, Group: 10, Start: 0, End: 90}, 5, 0},
			{PartitionPosition{Standing: Behind, Target: 5, Group: 10, Start: 7, End: 90}, 5, 2},
			{PartitionPosition{Standing: Behind, Target: 5, Group: 10, Start: 50, End: 90}, 5, 5}, // the log begins after the group's offset
			{PartitionPosition{Standing: Ahead, Target: 5, Group: 10, Start: 7, End: 90}, 5, 2},
			{PartitionPosition{Standing: Behind, Target: -1, Group: 10, Start: 3, End: 90}, 10, 3},
			{PartitionPosition{Standing: Level, Target: 5, Group: 10, Start: 7, End: 90}, 0, 0},
			{PartitionPosition{Standing: Unknown, Target: 5, Group: 10, Start: 7, End: 90}, 0, 0},
		} {
			if m, g := c.p.Missing(), c.p.Gone(); m != c.missing || g != c.gone {
				t.Errorf("%+v: %d are missing and %d gone, want %d and %d", c.p, m, g, c.missing, c.gone)
			}
		}
	})
}
