package storetest

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// twins parks a first content of an identity and another one as a conflict.
func (h *fixture[Tx]) twins(id string) (first, second store.StoredRow) {
	h.t.Helper()
	h.park(id)
	h.conflict(id, 2)
	return h.row(id, false), h.row(id, true)
}

// retries makes a row due, and returns it as it is then.
func (h *fixture[Tx]) retries(r store.StoredRow) store.StoredRow {
	h.t.Helper()
	h.t.must(errors.Join(h.requeuer().Requeue(h.t.context(), act("retry"), r.Seen())...))
	return h.number(r.Number)
}

// discards closes a row, and returns it as it is then.
func (h *fixture[Tx]) discards(r store.StoredRow) store.StoredRow {
	h.t.Helper()
	h.t.must(errors.Join(h.inbox().Discard(h.t.context(), act("discard"), r.Seen())...))
	return h.number(r.Number)
}

// owned are the cases of law 16 about who closes what: the marker of an identity belongs to one
// of its rows at a time.
func (s suite[Tx]) owned(t *T) {
	t.Run("law_16_a_discard_of_the_first_row_leaves_the_marker_of_a_conflict_that_waits",
		"A marker belongs to one row: closing the first content does not end a conflict that somebody has let run, which then takes effect once.",
		func(t *T) {
			h := s.opened(t)
			first, second := h.twins("a")
			second = h.retries(second)
			h.discards(h.number(first.Number))
			h.wantKinds(h.asks(h.print("a", 2)), already(store.Waiting))
			h.works(second.Number)
			h.wantKinds(h.asks(h.print("a", 2)), already(store.Applied))
			h.wantKinds(h.asks(h.print("a", 1)), conflict)
			h.wantCount("a", 1)
		})
	t.Run("law_16_a_discard_of_a_conflict_that_waits_gives_the_marker_back",
		"Once the conflict that was let run is closed, the marker says of the first content what its row says, and that can be retried.",
		func(t *T) {
			for _, again := range []bool{false, true} { // the conflict waits, or was parked again
				h := s.opened(t)
				first, second := h.twins("a")
				second = h.retries(second)
				if again {
					c := h.claimNext()
					h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, Event: store.RowParked, Reason: semel.ReasonPermanent, Ran: true}}))
					second = h.number(second.Number)
				}
				h.discards(second)
				h.wantKinds(h.asks(h.print("a", 1)), already(store.Parked))
				h.wantKinds(h.asks(h.print("a", 2)), conflict)
				h.retries(h.number(first.Number))
				h.works(first.Number)
				h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
				h.wantCount("a", 1)
			}
		})
	t.Run("law_16_of_two_rows_of_one_content_the_marker_belongs_to_the_one_that_it_tells",
		"A copy of the first content that came while a conflict had the marker takes effect once, and the closed row of the first content contradicts nothing.",
		func(t *T) {
			h := s.opened(t)
			first, second := h.twins("a")
			h.discards(first)
			second = h.retries(second)
			h.conflict("a", 1)
			h.discards(second)
			for _, r := range h.list(store.RowFilter{IDs: []string{"a"}, States: []store.RowState{store.StateParked}}) {
				h.works(h.retries(r).Number)
			}
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
			h.wantCount("a", 1)
			if h.Agrees != nil {
				h.Agrees(t)
			}
		})
	t.Run("law_16_a_conflict_that_was_parked_again_keeps_the_marker",
		"Closing the first content leaves the marker to the conflict that has it, which can be retried.",
		func(t *T) {
			h := s.opened(t)
			first, second := h.twins("a")
			h.retries(second)
			c := h.claimNext()
			h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, Event: store.RowParked, Reason: semel.ReasonPermanent, Ran: true}}))
			h.discards(h.number(first.Number))
			h.wantKinds(h.asks(h.print("a", 2)), already(store.Parked))
			h.retries(h.number(second.Number))
			h.works(second.Number)
			h.wantCount("a", 1)
		})
	t.Run("law_16_a_refusal_says_what_stands_in_the_way",
		"What is refused since another content waits is not said to be refused since it was applied.",
		func(t *T) {
			h := s.opened(t)
			first, second := h.twins("a")
			h.retries(second)
			err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), h.number(first.Number).Seen())...)
			if !errors.Is(err, semel.ErrConflict) || !errors.Is(err, admin.ErrOpen) {
				t.Errorf("while another waits: %v, want ErrOpen", err)
			}
			h.works(second.Number)
			err = errors.Join(h.requeuer().Requeue(t.context(), act("retry"), h.number(first.Number).Seen())...)
			if !errors.Is(err, semel.ErrConflict) || errors.Is(err, admin.ErrOpen) {
				t.Errorf("when another is applied: %v, want ErrConflict alone", err)
			}
		})
}

// reopened are the cases of discards that are taken back.
func (s suite[Tx]) reopened(t *T) {
	reopen := func(h *fixture[Tx], r store.StoredRow) error {
		return errors.Join(h.requeuer().Reopen(t.context(), act("reopen"), r.Seen())...)
	}
	t.Run("G5_a_discard_is_taken_back",
		"A discarded row is parked again with its marker and a record of it, keeps its reason, and can be retried.",
		func(t *T) {
			h := s.opened(t)
			r := h.discards(h.park("a"))
			t.must(reopen(h, r))
			after := h.number(r.Number)
			if after.State != store.StateParked || after.Reason != semel.ReasonPermanent || after.Revision == r.Revision {
				t.Errorf("reopened it is %+v", after)
			}
			h.wantOutcome("a", store.Parked)
			h.wantActs(r.Number, "discard done", "reopen done")
			h.retries(after)
			h.works(r.Number)
			h.wantOutcome("a", store.Applied)
			h.wantCount("a", 1)
		})
	t.Run("G5_what_was_discarded_by_a_handler_or_before_its_turn_can_be_reopened",
		"A row that was discarded while it waited, or by its handler, is parked as reopened.",
		func(t *T) {
			h := s.opened(t)
			waited := h.discards(h.receive("a", long, []byte("a")))
			c := h.claimed("b")[0]
			h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, Event: store.RowDiscarded, Reason: semel.ReasonGap, Ran: true}}))
			for id, r := range map[string]store.StoredRow{"a": waited, "b": h.number(c.Number)} {
				t.must(reopen(h, r))
				if after := h.number(r.Number); after.State != store.StateParked || after.Reason != admin.ReasonReopened {
					t.Errorf("reopened %s is %+v", id, after)
				}
				h.wantOutcome(id, store.Parked)
			}
		})
	t.Run("G5_nothing_is_reopened_that_took_effect_or_was_not_discarded",
		"What is not discarded, was changed meanwhile, or of which another content is applied, stays as it is.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			if err := reopen(h, r); !errors.Is(err, semel.ErrState) {
				t.Errorf("a parked row: %v, want ErrState", err)
			}
			closed := h.discards(r)
			if err := reopen(h, r); !errors.Is(err, semel.ErrChanged) {
				t.Errorf("as it was before: %v, want ErrChanged", err)
			}
			h.conflict("a", 2)
			h.retries(h.row("a", true))
			if err := reopen(h, closed); !errors.Is(err, admin.ErrOpen) {
				t.Errorf("while another content waits: %v, want ErrOpen", err)
			}
			h.works(h.row("a", true).Number)
			if err := reopen(h, closed); !errors.Is(err, semel.ErrConflict) || errors.Is(err, admin.ErrOpen) {
				t.Errorf("when another content is applied: %v, want ErrConflict", err)
			}
			if after := h.number(closed.Number); after.State != store.StateDiscarded || after.Revision != closed.Revision {
				t.Errorf("it is %+v", after)
			}
			h.wantActs(closed.Number, "discard done")
		})
	t.Run("law_16_a_conflict_that_is_reopened_leaves_the_marker",
		"A conflict that never had the marker is parked again, and the first content keeps it.",
		func(t *T) {
			h := s.opened(t)
			_, second := h.twins("a")
			second = h.discards(second)
			t.must(reopen(h, second))
			if after := h.number(second.Number); after.State != store.StateParked || after.Reason != semel.ReasonConflict {
				t.Errorf("reopened it is %+v", after)
			}
			h.wantOutcome("a", store.Parked)
		})
	if !s.h.Can.Calls {
		return
	}
	t.Run("trap_T46_nothing_is_reopened_of_which_a_call_may_have_taken_effect",
		"A discard of a row whose call has an unknown outcome stays.",
		func(t *T) {
			h := s.opened(t)
			r := h.discards(h.doubted("a", store.RowParked))
			if err := reopen(h, r); !errors.Is(err, semel.ErrState) {
				t.Errorf("%v, want ErrState", err)
			}
		})
}
