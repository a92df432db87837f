package storetest

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// twins parks a first content of an identity and another one as a conflict.
func (h *fixture[Tx]) twins(id string) (first, second contract.StoredRow) {
	h.t.Helper()
	h.park(id)
	h.conflict(id, 2)
	return h.row(id, false), h.row(id, true)
}

// retries makes a row due, and returns it as it is then.
func (h *fixture[Tx]) retries(r contract.StoredRow) contract.StoredRow {
	h.t.Helper()
	h.t.must(h.requeuer().Requeue(h.t.context(), r.Number, r.Revision, act("retry")))
	return h.number(r.Number)
}

// discards closes a row, and returns it as it is then.
func (h *fixture[Tx]) discards(r contract.StoredRow) contract.StoredRow {
	h.t.Helper()
	h.t.must(h.inbox().Discard(h.t.context(), r.Number, r.Revision, act("discard")))
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
			h.wantKinds(h.asks(h.print("a", 2)), already(contract.Waiting))
			h.works(second.Number)
			h.wantKinds(h.asks(h.print("a", 2)), already(contract.Applied))
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
					h.wantLost(h.leases().End(t.context(), []contract.ClaimEnding{{Claim: c.Claim, Event: contract.RowParked, Reason: semel.ReasonPermanent, Ran: true}}))
					second = h.number(second.Number)
				}
				h.discards(second)
				h.wantKinds(h.asks(h.print("a", 1)), already(contract.Parked))
				h.wantKinds(h.asks(h.print("a", 2)), conflict)
				h.retries(h.number(first.Number))
				h.works(first.Number)
				h.wantKinds(h.asks(h.print("a", 1)), already(contract.Applied))
				h.wantCount("a", 1)
			}
		})
	t.Run("law_16_a_conflict_that_was_parked_again_keeps_the_marker",
		"Closing the first content leaves the marker to the conflict that has it, which can be retried.",
		func(t *T) {
			h := s.opened(t)
			first, second := h.twins("a")
			h.retries(second)
			c := h.claimNext()
			h.wantLost(h.leases().End(t.context(), []contract.ClaimEnding{{Claim: c.Claim, Event: contract.RowParked, Reason: semel.ReasonPermanent, Ran: true}}))
			h.discards(h.number(first.Number))
			h.wantKinds(h.asks(h.print("a", 2)), already(contract.Parked))
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
			err := h.requeuer().Requeue(t.context(), first.Number, h.number(first.Number).Revision, act("retry"))
			if !errors.Is(err, semel.ErrConflict) || !errors.Is(err, contract.ErrOpen) {
				t.Errorf("while another waits: %v, want ErrOpen", err)
			}
			h.works(second.Number)
			err = h.requeuer().Requeue(t.context(), first.Number, h.number(first.Number).Revision, act("retry"))
			if !errors.Is(err, semel.ErrConflict) || errors.Is(err, contract.ErrOpen) {
				t.Errorf("when another is applied: %v, want ErrConflict alone", err)
			}
		})
}
