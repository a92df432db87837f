package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// reaperLimits tests which markers must not be removed: markers of other sources and consumers, and markers later than
// a low-water mark that was set under another policy.
func (s suite[Tx]) reaperLimits(t *T, old store.Verdict) {
	s.run(t, "trap_75_the_same_id_of_another_source_is_not_touched",
		"The same id from two sources is two messages: the end of one neither removes nor keeps the other.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			other := *h
			other.scope = h.scopeOf("billing", "mall", 0)
			h.put("a", store.Row{State: completed, Message: &semel.Message{}})
			other.park("a")
			other.put("b", store.Row{State: dead, Message: &semel.Message{}})
			h.park("b")
			if r := h.reaped(2); r.Rows != 2 {
				t.Errorf("%d rows were removed, want 2", r.Rows)
			}
			h.wantKinds(other.asks(other.contentMark("a", 1), h.contentMark("b", 1)), already(store.Parked), already(store.Parked))
			h.wantKinds(h.asks(h.aged("a", longAgo)), old)
			if rows := h.list(store.RowFilter{}); len(rows) != 2 {
				t.Errorf("%d rows are left, want 2", len(rows))
			}
		})
	s.run(t, "H3_the_low_water_mark_stays_under_a_longer_retention",
		"A low-water mark never goes back: markers before it are gone, even if the retention becomes longer.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			h.reaped(1)
			low := h.storedRetention().Low
			h.retain(store.Retention{Keep: time.Hour})
			h.pass(10)
			if now := h.storedRetention().Low; !now.Equal(low) {
				t.Errorf("the low-water mark was %v, and is %v", low, now)
			}
			h.wantKinds(h.asks(h.aged("a", time.Now().Add(-time.Minute))), old)
		})
	s.run(t, "H3_a_longer_retention_keeps_the_markers_that_it_covers",
		"A longer retention keeps the markers that it covers, even if they are below the low-water mark.", func(t *T, h *fixture[Tx]) {
			reader, able := h.Store.(admin.MarkerReader)
			if !able {
				return
			}
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("due", 1))
			moment(t.context())
			moment(t.context())
			h.deliver(h.contentMark("between", 1))
			moment(t.context())
			h.t.must(h.reaper().Progressed(t.context(), "billing", nil))
			_, err := h.reaper().Advance(t.context(), "billing")
			h.t.must(err)
			due, _, err := reader.Marker(t.context(), semel.Key{Consumer: "billing", Source: "shop", ID: "due"})
			h.t.must(err)
			keep := h.storedRetention().Progress.Sub(due.At) - shortRetention // only markers older than the first marker may be removed
			h.retain(store.Retention{Keep: keep})
			if r := h.pass(10); r.Markers != 1 {
				t.Errorf("%d markers were removed under a retention of %v, want the one that is due", r.Markers, keep)
			}
			h.wantKinds(h.asks(h.contentMark("between", 1)), already(store.Applied))
		})
	s.run(t, "H3_a_message_that_ended_recently_keeps_its_rows",
		"Retention counts from the end of a message: a row that an operator has just closed is kept for the whole retention.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			act := store.Act{Verb: "discard", Who: "test", Why: "test"}
			lone := h.park("lone")
			h.put("pair", store.Row{State: completed, Message: &semel.Message{}})
			b, v := h.begin(h.contentMark("pair", 2))
			h.wantKinds(v, conflict)
			h.commit(b, store.Ending{Rows: []store.Row{{Conflict: true, State: parked, Reason: semel.ReasonConflict, Message: &semel.Message{}}}})
			second := h.rowOfIdentity("pair", true)
			h.deliver(h.contentMark("due", 1))
			h.reaped(1) // the low-water mark is then later than all these markers
			for _, r := range []store.StoredRow{lone, second} {
				h.t.must(errors.Join(h.inbox().Discard(h.t.context(), act, r.Seen())...))
			}
			if r := h.pass(10); r.Markers != 0 || r.Rows != 0 {
				t.Errorf("%+v was removed although it has just ended", r)
			}
			if r := h.reaped(2); r.Rows != 3 {
				t.Errorf("%d rows were removed, want 3", r.Rows)
			}
		})
	if !s.h.Can.OneWriter {
		s.run(t, "trap_114_an_uncommitted_marker_is_not_removed",
			"If a batch is open for longer than a retention, its marker exists after its commit.", func(t *T, h *fixture[Tx]) {
				h.retain(store.Retention{Keep: shortRetention})
				slow := h.contentMark("slow", 1)
				b, v := h.begin(slow)
				h.wantKinds(v, fresh)
				h.deliver(h.contentMark("a", 1))
				h.reaped(1)
				h.commit(b, store.Ending{})
				h.wantKinds(h.asks(slow), already(store.Applied))
			})
	}
	s.run(t, "H1_a_retention_equal_to_the_horizon_is_enough", "A horizon equal to the retention does not stop the reaper.", func(t *T, h *fixture[Tx]) {
		h.retain(store.Retention{Keep: shortRetention, Horizon: shortRetention})
		h.deliver(h.contentMark("a", 1))
		h.reaped(1)
	})
	if s.h.Can.Leases {
		s.run(t, "H4_a_claimed_message_is_never_too_old",
			"A claimed message is known not to have taken effect, so its age is ignored.", func(t *T, h *fixture[Tx]) {
				h.retain(store.Retention{Keep: shortRetention})
				h.deliver(h.contentMark("a", 1))
				c := h.claimed("waits")[0]
				h.reaped(1)
				asking := h.asking(c)
				asking.Age = longAgo
				h.wantKinds(h.asks(asking), fresh)
			})
	}
	if !s.h.Can.OneConsumer {
		s.run(t, "trap_T17_a_reaper_is_of_one_consumer", "A reaper does not touch markers, rows, bodies and lanes of another consumer.", s.apartReaped)
	}
}

// apartReaped removes old markers of one consumer. Another consumer has markers with the same ids, and its removal is
// switched off.
func (s suite[Tx]) apartReaped(t *T, h *fixture[Tx]) {
	ctx, reaper := t.context(), h.reaper()
	audit := *h
	audit.scope = h.scopeOf("audit", "shop", 0)
	policy := store.Retention{Consumer: "audit", Keep: shortRetention, Bodies: shortRetention}
	t.must(reaper.Retain(ctx, policy))
	body := &semel.Message{Body: []byte("a body")}
	audit.put("a", store.Row{State: completed, Message: body})
	moment(ctx)
	t.must(reaper.Progressed(ctx, "audit", nil))
	if _, err := reaper.Advance(ctx, "audit"); err != nil {
		t.Fatal(err)
	}
	policy.Off = true
	t.must(reaper.Retain(ctx, policy))
	t.must(reaper.Progressed(ctx, "audit", []source.LaneAge{{Lane: "stuck", Oldest: longAgo}}))

	h.retain(store.Retention{Keep: shortRetention, Bodies: shortRetention})
	h.put("a", store.Row{State: completed, Message: body})
	h.reaped(1)
	t.wantErr("forgetting the lane of another consumer", reaper.ForgetLane(ctx, "billing", "stuck", store.Act{Verb: "forget lane", Who: "test", Why: "test"}), semel.ErrState)
	all, err := reaper.Retentions(ctx, "audit")
	if err != nil || len(all) != 1 || all[0].Held != "stuck" {
		t.Errorf("the retention of the other consumer is %+v, %v", all, err)
	}
	h.wantKinds(audit.asks(audit.contentMark("a", 1)), already(store.Applied))
	if rows := h.list(store.RowFilter{}); len(rows) != 1 || rows[0].Key.Consumer != "audit" || rows[0].BodyRemoved {
		t.Errorf("the rows are %+v", rows)
	}
}

// testOffsets tests the interface laneoffset.Store.
func (s suite[Tx]) testOffsets(t *T) {
	t.Run("I7_an_offset_only_rises_and_a_write_returns_the_previous_one",
		"Offsets are raised and never lowered, and each write returns the previous offset.", func(t *T) {
			o := offsetsOf(t, s.open(t).Store)
			o.stand(map[string]int64{"a": none, "b": none})
			o.advances(to("a", 10, none), to("b", 1<<40, none), to("c", 0, none))(none, none, none)
			o.advances(to("b", 7, 7), to("a", 12, 10))(1<<40, 10)
			o.advances(to("a", 11, none), to("b", 1<<40, 1<<40))(12, 1<<40)
			o.stand(map[string]int64{"a": 12, "b": 1 << 40, "c": 0, "d": none})
			o.advances()()
		})
	t.Run("trap_T110_nothing_is_written_if_one_lane_is_below_its_required_offset",
		"If one offset is less than required, or is missing, none is written: the database is not the one that was written before.", func(t *T) {
			o := offsetsOf(t, s.open(t).Store)
			o.advances(to("a", 10, none), to("b", 20, none))(none, none)
			o.advances(to("b", 30, 20), to("a", 15, 11))(20, 10)
			o.stand(map[string]int64{"a": 10, "b": 20})
			o.advances(to("a", 15, 10), to("c", 5, 3))(10, none)
			o.stand(map[string]int64{"a": 10, "b": 20, "c": none})
			o.advances(to("a", 15, 10), to("b", 30, 20))(10, 20)
			o.stand(map[string]int64{"a": 15, "b": 30})
		})
	t.Run("I7_offsets_are_kept_by_consumer_and_lane", "Offsets are separate for each consumer and lane, whatever their names.", func(t *T) {
		o := offsetsOf(t, s.open(t).Store)
		odd := []string{"kafka:group {\"\\,}:orders/1@00ff", "NULL", "", "ä'; --"}
		o.advances(to(odd[0], 1, none), to(odd[1], 2, none), to(odd[2], 3, none), to(odd[3], 4, none))(none, none, none, none)
		o.stand(map[string]int64{odd[0]: 1, odd[1]: 2, odd[2]: 3, odd[3]: 4, "kafka:group": none})
		o.consumer = "other"
		o.stand(map[string]int64{odd[0]: none, odd[1]: none})
	})
	t.Run("case_13_offsets_do_not_change_other_positions", "An offset does not change positions with other names, and one call can write many lanes.", func(t *T) {
		store := s.open(t).Store
		o := offsetsOf(t, store)
		if p, ok := store.(source.PositionStore); ok {
			t.must(p.SavePosition(t.context(), "c", "l", source.Position{Offset: 5, Length: 6, Check: []byte("x")}))
			defer s.wantPosition(t, p, "l", source.Position{Offset: 5, Length: 6, Check: []byte("x")})
		}
		all, want := []laneoffset.Advance{}, map[string]int64{}
		for i := range manyLanes {
			lane := fmt.Sprint("lane ", i)
			all, want[lane] = append(all, to(lane, int64(i), none)), int64(i)
		}
		o.advance(all)
		o.stand(want)
	})
	s.testOffsetsAtOnce(t)
}

// manyLanes is a number of lanes that few consumers reach.
const manyLanes = 1500

// testOffsetsAtOnce tests processes that advance offsets at the same time, and calls that fail.
func (s suite[Tx]) testOffsetsAtOnce(t *T) {
	t.Run("I7_of_concurrent_offsets_the_highest_is_kept",
		"Processes that write the same lanes at once, in any order, do not deadlock, and lower no offset.", func(t *T) {
			o := offsetsOf(t, s.open(t).Store)
			errs := make([]error, keepers)
			runConcurrently(keepers, func(i int) {
				for n := range int64(10) {
					all := []laneoffset.Advance{to("a", n*keepers+int64(i), none), to("b", n*keepers+int64(i), none), to("c", n, none)}
					if i%2 == 0 {
						slices.Reverse(all)
					}
					if _, err := o.store.AdvanceOffsets(t.context(), "c", all); err != nil {
						errs[i] = err
					}
				}
			})
			for _, err := range errs {
				t.must(err)
			}
			o.stand(map[string]int64{"a": 10*keepers - 1, "b": 10*keepers - 1, "c": 9})
		})
	t.Run("I7_an_advance_with_a_cancelled_context_fails_or_is_done", "A call whose context has ended writes all of its offsets or none.", func(t *T) {
		o := offsetsOf(t, s.open(t).Store)
		ctx, cancel := context.WithCancel(t.context())
		cancel()
		want := int64(none)
		if _, err := o.store.AdvanceOffsets(ctx, "c", []laneoffset.Advance{to("a", 1, none), to("b", 1, none)}); err == nil {
			want = 1
		}
		o.stand(map[string]int64{"a": want, "b": want})
	})
}

const none = laneoffset.None

func to(lane string, offset, least int64) laneoffset.Advance {
	return laneoffset.Advance{LaneOffset: laneoffset.LaneOffset{Lane: lane, Offset: offset}, Least: least}
}

// laneOffsets gives the cases access to the stored offsets of a consumer.
type laneOffsets struct {
	t        *T
	store    laneoffset.Store
	consumer string
}

func offsetsOf(t *T, store any) *laneOffsets {
	return &laneOffsets{t: t, store: store.(laneoffset.Store), consumer: "c"}
}

func (o *laneOffsets) advance(all []laneoffset.Advance) []laneoffset.LaneOffset {
	o.t.Helper()
	before, err := o.store.AdvanceOffsets(o.t.context(), o.consumer, all)
	o.t.must(err)
	if len(before) != len(all) {
		o.t.Fatalf("%d answers to %d lanes", len(before), len(all))
	}
	return before
}

// advances advances lanes, and returns a function that checks which previous offsets the store returned.
func (o *laneOffsets) advances(all ...laneoffset.Advance) func(before ...int64) {
	o.t.Helper()
	got := o.advance(all)
	return func(before ...int64) {
		o.t.Helper()
		for i, want := range before {
			if got[i] != (laneoffset.LaneOffset{Lane: all[i].Lane, Offset: want}) {
				o.t.Errorf("before lane %q advanced its offset was %+v, want %d", all[i].Lane, got[i], want)
			}
		}
	}
}

// stand checks that the given offsets are stored.
func (o *laneOffsets) stand(want map[string]int64) {
	o.t.Helper()
	var lanes []string
	for lane := range want {
		lanes = append(lanes, lane)
	}
	got, err := o.store.Offsets(o.t.context(), o.consumer, lanes)
	o.t.must(err)
	if len(got) != len(lanes) {
		o.t.Fatalf("%d offsets of %d lanes", len(got), len(lanes))
	}
	for i, lane := range lanes {
		if got[i] != (laneoffset.LaneOffset{Lane: lane, Offset: want[lane]}) {
			o.t.Errorf("lane %q has the offset %+v, want %d", lane, got[i], want[lane])
		}
	}
}
