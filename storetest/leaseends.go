package storetest

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// endCases are the laws of ending.
func endCases(run runCase) {
	for event, state := range endings {
		run("D4_a_claim_ends_as_its_event_says/"+event.String(), "Each ending leaves the row in its state, without a claim, and with what is said of the run.", func(h *claims) {
			n := h.put("a")
			c := h.one(long)
			lost, err := h.Store.Start(h.t.context(), []store.Claim{c.Claim})
			if err != nil || len(lost) != 0 {
				h.t.Fatalf("lost %v, %v", lost, err)
			}
			if !h.end(store.ClaimEnding{Claim: c.Claim, Event: event, After: long, Reason: semel.ReasonPermanent, Ran: true, Began: true, Error: "why"}) {
				h.t.Fatal("the claim does not stand")
			}
			r := h.wantState(n, state)
			if r.Attempts != 1 || r.Started != 0 || r.Reason != semel.ReasonPermanent || r.FirstError != "why" || r.LastError != "why" || !r.LockedUntil.IsZero() {
				h.t.Errorf("%+v", r)
			}
			if h.end(store.ClaimEnding{Claim: c.Claim, Event: event}) {
				h.t.Error("it ends twice")
			}
			if again := h.claim(10, long); len(again) != 0 { // of those that wait, none before its time
				h.t.Errorf("claimed again: %+v", again)
			}
		})
	}
	run("D3_what_was_released_is_due_at_once", "A row that was released, or failed and is due again, is claimed anew and is not suspect.", func(h *claims) {
		n := h.put("a")
		for _, event := range []store.RowEvent{store.RowReleased, store.RowFailed} {
			c := h.one(long)
			if !h.end(store.ClaimEnding{Claim: c.Claim, Event: event}) {
				h.t.Fatal("the claim does not stand")
			}
		}
		if c := h.one(long); c.Number != n || c.Suspect {
			h.t.Errorf("%+v", c)
		}
	})
	run("D5_a_release_takes_back_its_own_start_only", "Who had a claim whose lease has ended may have died of it: that is known until a handler comes to an end, whoever claims the row and gives it back.", func(h *claims) {
		n := h.put("a")
		h.one(brief)
		suspect := func(starts int) store.Claimed {
			h.t.Helper()
			c := h.again(n)
			if !c.Suspect || c.Row.Started != starts {
				h.t.Errorf("suspect %t with %d starts, want %d", c.Suspect, c.Row.Started, starts)
			}
			return c
		}
		c := suspect(1)
		if !h.end(store.ClaimEnding{Claim: c.Claim, Event: store.RowReleased}) {
			h.t.Fatal("the claim does not stand")
		}
		c = suspect(1)
		if lost, err := h.Store.Start(h.t.context(), []store.Claim{c.Claim}); err != nil || len(lost) > 0 {
			h.t.Fatal(lost, err)
		}
		if r := h.Row(h.t, n); r.Started != 2 {
			h.t.Errorf("%+v", r)
		}
		if !h.end(store.ClaimEnding{Claim: c.Claim, Event: store.RowReleased, Began: true}) {
			h.t.Fatal("the claim does not stand")
		}
		c = suspect(1)
		if !h.end(store.ClaimEnding{Claim: c.Claim, Event: store.RowFailed, Ran: true}) {
			h.t.Fatal("the claim does not stand")
		}
		if c := h.one(long); c.Suspect || c.Row.Started != 0 {
			h.t.Errorf("%+v", c)
		}
	})
	run("law_7_one_that_is_lost_does_not_keep_others_from_ending", "Of several endings in one call each is for itself.", func(h *claims) {
		a, b := h.put("a"), h.put("b")
		both := h.claim(2, long)
		if len(both) != 2 || !h.end(store.ClaimEnding{Claim: both[0].Claim, Event: store.RowParked}) {
			h.t.Fatalf("claimed %+v", both)
		}
		lost, err := h.Store.End(h.t.context(), []store.ClaimEnding{{Claim: both[0].Claim, Event: store.RowCompleted}, {Claim: both[1].Claim, Event: store.RowCompleted}})
		if err != nil || !slices.Equal(lost, []int{0}) {
			h.t.Errorf("lost %v, %v", lost, err)
		}
		h.wantState(a, store.StateParked)
		h.wantState(b, store.StateCompleted)
	})
}
