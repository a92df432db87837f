package storetest

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// aDay is by how much the clock was ahead.
const aDay = 24 * time.Hour

// storesTime is the time by the store's clock.
func (h *fixture[Tx]) storesTime() time.Time { return h.receive("now", aDay, nil).ReceivedAt }

// aheads are the cases of a store whose clock was ahead, and is right again: what it had dated is
// further ahead than it can be.
func (s suite[Tx]) aheads(t *T) {
	for _, name := range []string{"a_received_row", "a_named_row"} {
		t.Run("trap_T113_"+name+"_that_was_dated_ahead_is_due_now", "A row that was received while the clock was ahead waits for nothing, so a claim takes it, and tells of it.", func(t *T) {
			h := s.opened(t)
			if h.Ahead == nil {
				t.lacks("Instance.Ahead")
			}
			n := h.receive("a", 0, []byte("a")).Number
			h.Ahead(t, aDay)
			rows, by := 0, time.Duration(0)
			o := store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: long, Ahead: func(r int, b time.Duration) { rows, by = r, b }}
			if name == "a_named_row" {
				o.Numbers = []int64{n}
			}
			got, err := h.leases().Claim(t.context(), o)
			t.must(err)
			if len(got) != 1 || got[0].Number != n {
				t.Fatalf("%+v is claimed, want row %d", got, n)
			}
			if rows != 1 || by < aDay-long || by > aDay {
				t.Errorf("%d rows are told of, %v ahead", rows, by)
			}
			if r := h.number(n); r.ReceivedAt.Sub(h.storesTime()) > 0 {
				t.Errorf("it was received at %v", r.ReceivedAt)
			}
		})
	}
	t.Run("trap_T113_a_retry_that_was_dated_ahead_waits_for_its_own_wait", "A row whose next try was set while the clock was ahead waits for as long as it was to, from now; a copy that comes changes nothing of that.", func(t *T) {
		h := s.opened(t)
		if h.Ahead == nil {
			t.lacks("Instance.Ahead")
		}
		r := h.put("a", store.Row{State: store.StateFailedRetryable, After: long, Message: &semel.Message{Body: []byte("a")}})
		h.Ahead(t, aDay)
		b, v := h.begin(h.print("a", 1))
		h.wantKinds(v, already(store.Waiting))
		h.commit(b, store.Ending{Rows: []store.Row{{Repeat: true}}})
		if got := h.takes(r.Number, long); len(got) != 0 {
			t.Errorf("it is claimed before its time: %+v", got)
		}
		if wait := h.number(r.Number).DueAt.Sub(h.storesTime()); wait > 2*long {
			t.Errorf("it is due in %v, want %v", wait, long)
		}
	})
	t.Run("trap_T113_a_lease_that_was_dated_ahead_ends_after_its_own_length", "A claim that was made, or extended, while the clock was ahead stands for its lease from now, and then another takes the row.", func(t *T) {
		h := s.opened(t)
		if h.Ahead == nil {
			t.lacks("Instance.Ahead")
		}
		c := h.claimed("a")[0]
		h.Ahead(t, aDay)
		if got := h.takes(c.Number, long); len(got) != 0 {
			t.Fatalf("it is claimed beside who has it: %+v", got)
		}
		h.wantKinds(h.asks(h.asking(c)), fresh)
		if left := h.number(c.Number).LockedUntil.Sub(h.storesTime()); left > 2*long {
			t.Errorf("the lease ends in %v, want %v", left, long)
		}
		short := h.takes(h.receive("b", 0, []byte("b")).Number, brief)[0]
		lost, err := h.leases().Extend(t.context(), []store.Claim{short.Claim}, brief)
		t.must(err)
		if len(lost) > 0 {
			t.Errorf("the extension lost %v", lost)
		}
		h.Ahead(t, aDay)
		h.again(short.Number)
	})
	t.Run("trap_T113_an_extension_ends_a_lease_that_was_dated_ahead", "Whoever extends a claim of a time when the clock was ahead has it for the lease, not for a day.", func(t *T) {
		h := s.opened(t)
		if h.Ahead == nil {
			t.lacks("Instance.Ahead")
		}
		c := h.claimed("a")[0]
		h.Ahead(t, aDay)
		lost, err := h.leases().Start(t.context(), []store.Claim{c.Claim})
		t.must(err)
		again, err := h.leases().Extend(t.context(), []store.Claim{c.Claim}, long)
		t.must(err)
		if len(lost)+len(again) > 0 {
			t.Errorf("the start lost %v, the extension %v", lost, again)
		}
		if left := h.number(c.Number).LockedUntil.Sub(h.storesTime()); left > 2*long || left < long/2 {
			t.Errorf("the lease ends in %v, want %v", left, long)
		}
	})
	t.Run("trap_T113_a_person_makes_a_received_row_due_that_was_dated_ahead", "A retry makes it due now; and of the received rows a filter chooses those that are due later.", func(t *T) {
		h := s.opened(t)
		if h.Ahead == nil {
			t.lacks("Instance.Ahead")
		}
		n := h.receive("a", 0, []byte("a")).Number
		h.Ahead(t, aDay)
		h.receive("b", 0, []byte("b"))
		f := store.RowFilter{States: []store.RowState{received}, DueLater: true}
		found, err := h.inbox().Rows(t.context(), f)
		t.must(err)
		if len(found) != 1 || found[0].Number != n {
			t.Fatalf("the filter chooses %+v, want row %d", found, n)
		}
		parked := h.put("c", store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("c")}})
		if all, err := h.inbox().Rows(t.context(), store.RowFilter{DueLater: true}); err != nil || len(all) != 2 || all[1].Number != parked.Number {
			t.Errorf("with rows in other states it chooses %+v, %v, want rows %d and %d", all, err, n, parked.Number)
		}
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("release"), store.RowRevision{Number: n, Revision: found[0].Revision})...))
		if found, err = h.inbox().Rows(t.context(), f); err != nil || len(found) > 0 {
			t.Errorf("the filter chooses %+v, %v", found, err)
		}
		if r := h.number(n); r.State != received || r.DueAt.Sub(h.storesTime()) > 0 {
			t.Errorf("it is %s and due at %v", r.State, r.DueAt)
		}
		h.wantActs(n, "release done")
	})
	t.Run("trap_T113_a_row_that_was_dated_ahead_and_is_skipped_is_due_now", "Those behind it go on, and the row waits no longer than it would have by a right clock.", func(t *T) {
		h := s.opened(t)
		if h.Ahead == nil {
			t.lacks("Instance.Ahead")
		}
		if !s.h.Can.Lines {
			t.lacks("Abilities.Lines")
		}
		rows := append(h.enters("k", received, "1"), h.enters("k", blocked, "2")...)
		h.Ahead(t, aDay)
		t.must(errors.Join(h.lines().Skip(t.context(), act("skip"), rows[0].Seen())...))
		h.wantStates(rows, received, received)
		if r := h.number(rows[0].Number); r.DueAt.Sub(h.storesTime()) > 0 {
			t.Errorf("it is due at %v", r.DueAt)
		}
	})
	t.Run("trap_T113_a_person_makes_a_row_due_that_waits", "A retry makes a received row due that is due later, and is refused for one that is due.", func(t *T) {
		h := s.opened(t)
		r := h.receive("a", aDay, []byte("a"))
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...))
		r = h.number(r.Number)
		if r.State != store.StateReceived || r.DueAt.Sub(r.ReceivedAt) > long {
			t.Errorf("it is %s and due at %v", r.State, r.DueAt)
		}
		h.wantRefused(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...), admin.ErrDueAlready)
		h.wantActs(r.Number, "retry done")
		h.works(r.Number)
	})
}
