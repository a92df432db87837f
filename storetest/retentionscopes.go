package storetest

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// bounded are the cases of what a reaper leaves alone: other sources and consumers, and
// what it has removed before under another policy.
func (s suite[Tx]) bounded(t *T, old store.Verdict) {
	t.Run("trap_75_what_another_source_has_of_an_id_is_not_touched", "An id of two sources is two messages: the end of the one neither removes nor keeps the other.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		other := *h
		other.scope = h.scopeOf("billing", "mall", 0)
		h.put("a", store.Row{State: completed, Message: &semel.Message{}})
		other.park("a")
		other.put("b", store.Row{State: dead, Message: &semel.Message{}})
		h.park("b")
		if r := h.reaped(2); r.Rows != 2 {
			t.Errorf("%d rows were removed, want 2", r.Rows)
		}
		h.wantKinds(other.asks(other.print("a", 1), h.print("b", 1)), already(store.Parked), already(store.Parked))
		h.wantKinds(h.asks(h.aged("a", longAgo)), old)
		if rows := h.list(store.RowFilter{}); len(rows) != 2 {
			t.Errorf("%d rows are left, want 2", len(rows))
		}
	})
	t.Run("H3_what_was_removed_stays_removed_under_a_longer_retention", "A low-water mark never goes back: behind it markers are gone, whatever is kept from now on.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		h.deliver(h.print("a", 1))
		h.reaped(1)
		low := h.kept().Low
		h.retain(store.Retention{Keep: time.Hour})
		h.pass(10)
		if now := h.kept().Low; !now.Equal(low) {
			t.Errorf("the low-water mark was %v, and is %v", low, now)
		}
		h.wantKinds(h.asks(h.aged("a", time.Now().Add(-time.Minute))), old)
	})
	t.Run("H3_a_longer_retention_keeps_what_is_not_due_under_it", "Below the low-water mark, too, a marker stays that the retention of now keeps.", func(t *T) {
		h := s.opened(t)
		reader, able := h.Store.(admin.MarkerReader)
		if !able {
			return
		}
		h.retain(store.Retention{Keep: soon})
		h.deliver(h.print("due", 1))
		moment(t.context())
		moment(t.context())
		h.deliver(h.print("between", 1))
		moment(t.context())
		h.t.must(h.reaper().Progressed(t.context(), "billing", nil))
		_, err := h.reaper().Advance(t.context(), "billing")
		h.t.must(err)
		due, _, err := reader.Marker(t.context(), semel.Key{Consumer: "billing", Source: "shop", ID: "due"})
		h.t.must(err)
		keep := h.kept().Progress.Sub(due.At) - soon // only what is older than the first may go
		h.retain(store.Retention{Keep: keep})
		if r := h.pass(10); r.Markers != 1 {
			t.Errorf("%d markers were removed under a retention of %v, want the one that is due", r.Markers, keep)
		}
		h.wantKinds(h.asks(h.print("between", 1)), already(store.Applied))
	})
	t.Run("H3_what_ended_lately_stays_with_its_rows", "The end of a message counts, not its beginning: what a person has just closed is kept for as long as anything else.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		act := store.Act{Verb: "discard", Who: "test", Why: "test"}
		lone := h.park("lone")
		h.put("pair", store.Row{State: completed, Message: &semel.Message{}})
		b, v := h.begin(h.print("pair", 2))
		h.wantKinds(v, conflict)
		h.commit(b, store.Ending{Rows: []store.Row{{Conflict: true, State: parked, Reason: semel.ReasonConflict, Message: &semel.Message{}}}})
		second := h.row("pair", true)
		h.deliver(h.print("due", 1))
		h.reaped(1) // so that the mark is behind all of them
		for _, r := range []store.StoredRow{lone, second} {
			h.t.must(errors.Join(h.inbox().Discard(h.t.context(), act, r.Seen())...))
		}
		if r := h.pass(10); r.Markers != 0 || r.Rows != 0 {
			t.Errorf("%+v was removed, and has ended in this moment", r)
		}
		if r := h.reaped(2); r.Rows != 3 {
			t.Errorf("%d rows were removed, want 3", r.Rows)
		}
	})
	if !s.h.Can.OneWriter {
		t.Run("trap_114_what_is_not_committed_yet_is_not_removed", "A batch may be open for longer than a retention: its marker is there when it has committed.", func(t *T) {
			h := s.opened(t)
			h.retain(store.Retention{Keep: soon})
			slow := h.print("slow", 1)
			b, v := h.begin(slow)
			h.wantKinds(v, fresh)
			h.deliver(h.print("a", 1))
			h.reaped(1)
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(slow), already(store.Applied))
		})
	}
	t.Run("H1_a_retention_as_long_as_a_copy_can_be_late_is_enough", "A horizon of just the retention stops nothing.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon, Horizon: soon})
		h.deliver(h.print("a", 1))
		h.reaped(1)
	})
	if s.h.Can.Leases {
		t.Run("H4_what_waits_in_the_inbox_is_never_too_old", "Of a claim it is known that it has not taken effect, so that its age decides nothing.", func(t *T) {
			h := s.opened(t)
			h.retain(store.Retention{Keep: soon})
			h.deliver(h.print("a", 1))
			c := h.claimed("waits")[0]
			h.reaped(1)
			asking := h.asking(c)
			asking.Age = longAgo
			h.wantKinds(h.asks(asking), fresh)
		})
	}
	if !s.h.Can.OneConsumer {
		t.Run("trap_T17_a_reaper_is_of_one_consumer", "Markers, rows, bodies and lanes of another consumer are not its own.", func(t *T) { s.apartReaped(t) })
	}
}

// apartReaped reaps beside a consumer of the same ids whose reaper was switched off.
func (s suite[Tx]) apartReaped(t *T) {
	h := s.opened(t)
	ctx, reaper := t.context(), h.reaper()
	audit := *h
	audit.scope = h.scopeOf("audit", "shop", 0)
	policy := store.Retention{Consumer: "audit", Keep: soon, Bodies: soon}
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

	h.retain(store.Retention{Keep: soon, Bodies: soon})
	h.put("a", store.Row{State: completed, Message: body})
	h.reaped(1)
	if err := reaper.ForgetLane(ctx, "billing", "stuck", store.Act{Verb: "forget lane", Who: "test", Why: "test"}); !errors.Is(err, semel.ErrState) {
		t.Errorf("the lane of another consumer is forgotten: %v", err)
	}
	all, err := reaper.Retentions(ctx, "audit")
	if err != nil || len(all) != 1 || all[0].Held != "stuck" {
		t.Errorf("of the other it says %+v, %v", all, err)
	}
	h.wantKinds(audit.asks(audit.print("a", 1)), already(store.Applied))
	if rows := h.list(store.RowFilter{}); len(rows) != 1 || rows[0].Key.Consumer != "audit" || rows[0].BodyRemoved {
		t.Errorf("the rows are %+v", rows)
	}
}
