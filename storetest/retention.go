package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func (h *fixture[Tx]) reaper() store.Reaper { return h.Store.(store.Reaper) }

// retain stores a retention policy for the consumer.
func (h *fixture[Tx]) retain(r store.Retention) {
	h.t.Helper()
	r.Consumer = "billing"
	h.t.must(h.reaper().Retain(h.t.context(), r))
}

const shortRetention = time.Millisecond

// storedRetention returns the stored retention policy of the consumer.
func (h *fixture[Tx]) storedRetention() store.StoredRetention {
	h.t.Helper()
	all, err := h.reaper().Retentions(h.t.context(), "billing")
	h.t.must(err)
	if len(all) != 1 || all[0].Consumer != "billing" {
		h.t.Fatalf("the retentions are %+v", all)
	}
	return all[0]
}

// pass removes, in one pass, all markers that can be removed now. Each call of Reap examines no more than the given
// number of markers.
func (h *fixture[Tx]) pass(most int) (sum store.Reaped) {
	h.t.Helper()
	_, err := h.reaper().Advance(h.t.context(), "billing")
	h.t.must(err)
	over := false
	for calls := 0; !over; calls++ {
		o := store.Reaping{Consumer: "billing", Most: most, After: sum.Next}
		r, err := h.reaper().Reap(h.t.context(), o)
		h.t.must(err)
		if calls == 1000 || r.Elsewhere {
			h.t.Fatalf("after %d calls the pass is at %+v", calls, r)
		}
		if r.Markers > int64(most) || r.Bodies > int64(most) {
			h.t.Errorf("one call removed %+v, at most %d are wanted", r, most)
		}
		over = sum.Add(o, r)
	}
	return sum
}

// reaped reports progress and runs passes that remove old markers until the wanted number of markers was removed. One
// pass may not be enough, because a marker that was just written may not yet be older than the retention.
func (h *fixture[Tx]) reaped(markers int64) (sum store.Reaped) {
	h.t.Helper()
	ctx := h.t.context()
	for sum.Markers < markers {
		h.t.must(h.reaper().Progressed(ctx, "billing", nil))
		r := h.pass(2)
		sum.Markers, sum.Rows, sum.Bodies = sum.Markers+r.Markers, sum.Rows+r.Rows, sum.Bodies+r.Bodies
		if moment(ctx); ctx.Err() != nil {
			h.t.Fatalf("%d markers were removed, want %d", sum.Markers, markers)
		}
	}
	if sum.Markers != markers {
		h.t.Errorf("%d markers were removed, want %d", sum.Markers, markers)
	}
	return sum
}

// moment waits until the store's clock has advanced a little.
func moment(ctx interface{ Done() <-chan struct{} }) {
	timer := time.NewTimer(2 * shortRetention)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// aged returns a mark with an Age that the store must check.
func (h *fixture[Tx]) aged(id string, age time.Time) store.Mark {
	m := h.contentMark(id, 1)
	m.Age = age
	return m
}

// longAgo is a time before all times that a store in the tests has to keep.
var longAgo = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// testRetention tests how long the store keeps markers.
func (s suite[Tx]) testRetention(t *T) {
	old := store.Verdict{Kind: store.Old}
	gone := fresh // the answer for an identity whose marker was removed, if the mark has no age
	if s.h.Can.OneConsumer {
		old, gone = already(store.Applied), already(store.Applied) // the markers are in the user's own table and are never removed
	}
	s.run(t, "H3_a_due_marker_is_removed_and_its_copy_is_old",
		"A marker is removed after its retention, and a copy that is older than the retention is never fresh.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1), h.contentMark("b", 1), h.contentMark("c", 1), h.contentMark("d", 1), h.contentMark("e", 1))
			h.reaped(5)
			h.wantKinds(h.asks(h.aged("a", longAgo)), old)
			h.wantKinds(h.asks(h.aged("b", time.Now().Add(store.MaxClockSkew/2))), gone)
			h.wantKinds(h.asks(h.contentMark("c", 1)), gone)
			h.deliver(h.aged("new", time.Now().Add(store.MaxClockSkew/2)))
			h.wantKinds(h.asks(h.aged("new", longAgo)), already(store.Applied))
		})
	s.run(t, "H3_nothing_is_removed_before_the_low_water_mark_is_raised",
		"The reaper removes nothing before it has raised the low-water mark; otherwise copies of removed markers would be fresh.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			moment(h.t.context())
			h.t.must(h.reaper().Progressed(h.t.context(), "billing", nil))
			moment(h.t.context())
			if r, err := h.reaper().Reap(h.t.context(), store.Reaping{Consumer: "billing", Most: 10}); err != nil || r.Markers != 0 {
				t.Fatalf("%+v was removed, %v", r, err)
			}
			h.wantKinds(h.asks(h.aged("a", longAgo)), already(store.Applied))
			h.reaped(1)
		})
	s.run(t, "H4_an_old_mark_can_be_trimmed_and_parked",
		"A mark that is too old can be trimmed like any other, and can be written as parked by a mark without an age.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			h.reaped(1)
			never := h.aged("never", longAgo)
			b, v := h.begin(never, h.aged("young", time.Now().Add(store.MaxClockSkew/2)))
			h.wantKinds(v, store.Verdict{Kind: store.Old}, fresh)
			h.commit(b, store.Ending{Trim: []int{0}})
			h.park("never")
			h.wantKinds(h.asks(never), already(store.Parked))
			h.wantKinds(h.asks(h.aged("young", longAgo)), already(store.Applied))
		})
	s.run(t, "trap_T68_nothing_unfinished_is_removed",
		"An identity that waits, is parked or has an unfinished row keeps its marker and its rows, however old they are.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.park("parked")
			h.receive("waits", time.Hour, nil)
			h.deliver(h.contentMark("applied", 1))
			b, v := h.begin(h.contentMark("applied", 2))
			h.wantKinds(v, conflict)
			h.commit(b, store.Ending{Rows: []store.Row{{Conflict: true, State: parked, Reason: semel.ReasonConflict, Message: &semel.Message{}}}})
			h.deliver(h.contentMark("due", 1))
			h.reaped(1)
			if r := h.pass(2); r.Markers != 0 || r.Rows != 0 || r.Kept != 3 {
				t.Errorf("the next pass removed %+v, and three markers stay", r)
			}
			h.wantKinds(h.asks(h.contentMark("parked", 1), h.contentMark("waits", 1), h.contentMark("applied", 1)),
				already(store.Parked), already(store.Waiting), already(store.Applied))
			if rows := h.list(store.RowFilter{}); len(rows) != 3 {
				t.Errorf("there are %d rows, want 3", len(rows))
			}
		})
	s.run(t, "trap_T67_rows_are_removed_with_their_marker", "Rows that have ended are removed with their marker.", func(t *T, h *fixture[Tx]) {
		h.retain(store.Retention{Keep: shortRetention})
		r := h.park("discarded")
		h.t.must(errors.Join(h.inbox().Discard(h.t.context(), store.Act{Verb: "discard", Who: "test", Why: "test"}, r.Seen())...))
		h.put("dead", store.Row{State: dead, Reason: semel.ReasonPermanent, Message: &semel.Message{}})
		h.put("done", store.Row{State: completed, Message: &semel.Message{}})
		if r := h.reaped(3); r.Rows != 3 {
			t.Errorf("%d rows were removed, want 3", r.Rows)
		}
		if rows := h.list(store.RowFilter{}); len(rows) != 0 {
			t.Errorf("there are %d rows, want none", len(rows))
		}
	})
	s.run(t, "trap_124_markers_that_stay_do_not_stop_a_pass", "Markers that stay do not stop a pass from removing later ones.", func(t *T, h *fixture[Tx]) {
		h.retain(store.Retention{Keep: shortRetention})
		for i := range 7 {
			h.park(fmt.Sprint("parked ", i))
		}
		h.deliver(h.contentMark("a", 1))
		h.reaped(1)
	})
	s.testWrongTimes(t)
	s.testWithheld(t)
	s.testShown(t)
	s.testBodies(t)
	s.reaperLimits(t, old)
}

// testLateInLine tests a message that waits for an earlier message of its line (the queue of a key or lane) and is also
// older than the retention. All stores must return the same answers for the first two marks.
func (s suite[Tx]) testLateInLine(t *T) {
	s.run(t, "H4_C8_a_late_message_gets_behind_before_old",
		"A message that is too old and behind another of its line gets the verdict behind; if it asks to wait there, it gets the verdict old.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			h.reaped(1)
			h.enters("l", parked, "first")
			for _, c := range []struct {
				as   store.Outcome
				want store.VerdictKind
			}{{store.Applied, store.Behind}, {store.Waiting, store.Old}, {store.Parked, store.Fresh}} {
				m := h.inLine("l", "late", c.as)
				if m.Asks() {
					m.Age = longAgo
				}
				h.wantKinds(h.asks(m), store.Verdict{Kind: c.want})
			}
		})
}

// testWithheld tests cases in which no old marker may be removed.
func (s suite[Tx]) testWithheld(t *T) {
	// refuses checks that the store removes no marker and returns semel.ErrState.
	refuses := func(h *fixture[Tx], why string) {
		h.t.Helper()
		moment(h.t.context())
		if at, err := h.reaper().Advance(h.t.context(), "billing"); !errors.Is(err, semel.ErrState) || !at.IsZero() {
			h.t.Errorf("%s: the low-water mark is raised to %v, %v", why, at, err)
		}
		if r, err := h.reaper().Reap(h.t.context(), store.Reaping{Consumer: "billing", Most: 10}); !errors.Is(err, semel.ErrState) || r.Markers != 0 {
			h.t.Errorf("%s: %+v was removed, %v", why, r, err)
		}
		h.wantKinds(h.asks(h.aged("a", longAgo)), already(store.Applied))
	}
	s.run(t, "H1_nothing_is_removed_without_a_policy",
		"Nothing is removed without a retention, with an unlimited one, with the reaper off, or with a horizon longer than the retention.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("a", 1))
			refuses(h, "no policy")
			h.retain(store.Retention{})
			refuses(h, "for ever")
			h.retain(store.Retention{Keep: shortRetention, Off: true})
			refuses(h, "off")
			h.retain(store.Retention{Keep: shortRetention, Horizon: time.Hour, Why: "a test"})
			refuses(h, "horizon")
			h.retain(store.Retention{Keep: time.Hour, Horizon: shortRetention})
			if r := h.pass(10); r.Markers != 0 {
				t.Errorf("%+v is younger than its retention", r)
			}
			h.wantKinds(h.asks(h.aged("a", time.Now())), already(store.Applied))
		})
	s.run(t, "trap_T63_the_cutoff_stops_while_a_consumer_makes_no_progress",
		"The cutoff is before the last progress, so that an outage removes nothing.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			moment(h.t.context())
			h.deliver(h.contentMark("a", 1)) // messages later than the progress that was recorded with the policy
			for range 3 {
				moment(h.t.context())
				h.retain(store.Retention{Keep: shortRetention}) // the start of a process does not count as progress
				if r := h.pass(10); r.Markers != 0 {
					t.Fatalf("%+v was removed", r)
				}
			}
			h.reaped(1)
		})
	s.run(t, "H2_a_lagging_lane_holds_the_cutoff",
		"An unsettled or unread message of a lane holds the cutoff back until it is settled, or until an operator forgets the lane.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			progress := func(lanes ...source.LaneAge) { h.t.must(h.reaper().Progressed(h.t.context(), "billing", lanes)) }
			behind := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			progress(source.LaneAge{Lane: "stuck", Oldest: behind}, source.LaneAge{Lane: "busy", Oldest: time.Now().Add(-time.Minute)})
			progress(source.LaneAge{Lane: "busy"})
			moment(h.t.context())
			if r := h.pass(10); r.Markers != 0 {
				t.Errorf("%+v was removed", r)
			}
			if k := h.storedRetention(); k.Held != "stuck" || !k.Oldest.Equal(behind) || !k.Cutoff.Equal(behind.Add(-shortRetention)) {
				t.Errorf("lane %q holds the cutoff since %v, and the cutoff is %v", k.Held, k.Oldest, k.Cutoff)
			}
			act := store.Act{Verb: "forget lane", Who: "test", Why: "test"}
			t.wantErr("forgetting a lane that does not exist", h.reaper().ForgetLane(h.t.context(), "billing", "other", act), semel.ErrState)
			h.t.must(h.reaper().ForgetLane(h.t.context(), "billing", "stuck", act))
			progress(source.LaneAge{Lane: "busy"})
			if r := h.pass(10); r.Markers != 1 {
				t.Errorf("%+v was removed", r)
			}
		})
	s.run(t, "H2_a_lane_that_no_process_reports_holds_the_cutoff",
		"A lane that no process reports keeps its last reported position: later messages of the lane may be copies.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			progress := func(lanes ...source.LaneAge) { h.t.must(h.reaper().Progressed(h.t.context(), "billing", lanes)) }
			progress(source.LaneAge{Lane: "silent"}, source.LaneAge{Lane: "busy"})
			moment(h.t.context())
			h.deliver(h.contentMark("a", 1))
			for range 3 {
				moment(h.t.context())
				progress(source.LaneAge{Lane: "busy"})
				if r := h.pass(10); r.Markers != 0 {
					t.Fatalf("%+v was removed", r)
				}
			}
			progress(source.LaneAge{Lane: "silent"})
			moment(h.t.context())
			progress(source.LaneAge{Lane: "silent"}, source.LaneAge{Lane: "busy"})
			if r := h.pass(10); r.Markers != 1 {
				t.Errorf("%+v was removed after the lane was reported again", r)
			}
		})
	s.run(t, "H2_a_wrong_producer_clock_breaks_nothing",
		"Producers set the times of records, so no time is too early or too late to be kept.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			for _, at := range []time.Time{time.Unix(-1, 0), time.Unix(1<<40, 0), time.UnixMilli(-1 << 62)} {
				h.t.must(h.reaper().Progressed(h.t.context(), "billing", []source.LaneAge{{Lane: "a", Oldest: at}}))
				h.storedRetention()
				h.pass(10)
			}
		})
}

// testBodies tests bodies that are kept for a shorter time than their markers.
func (s suite[Tx]) testBodies(t *T) {
	s.run(t, "D7_a_body_is_removed_and_its_identity_stays",
		"The bodies of completed and discarded rows are removed before the rows; bodies that can still be retried stay.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: time.Hour, Bodies: shortRetention})
			body := &semel.Message{Body: []byte("a body")}
			for i := range 3 {
				h.put(fmt.Sprint("done ", i), store.Row{State: completed, Message: body})
			}
			h.put("dead", store.Row{State: dead, Message: body})
			h.put("parked", store.Row{State: parked, Message: body})
			ctx := h.t.context()
			bodies := int64(0)
			for bodies < 3 && ctx.Err() == nil {
				bodies += h.pass(2).Bodies
				moment(ctx)
			}
			for _, r := range h.list(store.RowFilter{}) {
				removed := r.State == completed
				if r.BodyRemoved != removed || (r.Size == 0) != removed || (r.Message.Body == nil) != removed {
					t.Errorf("%s: body removed: %t, %d bytes left", r.Key.ID, r.BodyRemoved, r.Size)
				}
			}
			if bodies != 3 || h.pass(10).Bodies != 0 {
				t.Errorf("%d bodies were removed", bodies)
			}
			h.wantKinds(h.asks(h.contentMark("done 0", 1)), already(store.Applied))
		})
	s.run(t, "D7_a_pass_continues_with_bodies_after_its_markers",
		"Markers that a pass has looked at are not looked at again while bodies are left.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention, Bodies: shortRetention})
			for i := range 3 { // markers that stay because their messages have not ended
				h.put(fmt.Sprint("parked ", i), store.Row{State: parked, Message: &semel.Message{Body: []byte("a body")}})
			}
			moment(h.t.context())
			h.t.must(h.reaper().Progressed(h.t.context(), "billing", nil))
			if sum := h.pass(10); sum.Kept != 3 {
				t.Errorf("a pass looked at %+v", sum)
			}
			r, err := h.reaper().Reap(h.t.context(), store.Reaping{Consumer: "billing", Most: 10, After: store.ReapMark{Done: true}})
			if h.t.must(err); r.Kept != 0 || r.Markers != 0 || !r.Next.Done {
				t.Errorf("after the markers the pass looked at %+v", r)
			}
		})
}
