package storetest

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// manyActs are the laws of acts on several rows at once.
func (s suite[Tx]) manyActs(t *T) {
	t.Run("of_many_rows_each_is_judged_alone",
		"A retry of many rows makes each row due that may be, with a record, and says of each other row why not.",
		func(t *T) {
			h := s.opened(t)
			a, closed, b := h.park("a"), h.discards(h.park("closed")), h.park("b")
			stale := store.RowRevision{Number: b.Number, Revision: b.Revision + 1}
			first, second := h.twins("twin")
			gone := store.RowRevision{Number: second.Number + 1000, Revision: 1}
			c := h.park("c")
			errs := h.requeuer().Requeue(t.context(), act("retry"), a.Seen(), closed.Seen(), stale, first.Seen(), second.Seen(), gone, c.Seen(), a.Seen())
			h.wantEach(errs, nil, semel.ErrState, semel.ErrChanged, nil, admin.ErrOpen, semel.ErrChanged, nil, semel.ErrChanged)
			for _, r := range []store.StoredRow{a, first, c} {
				h.wantActs(r.Number, "retry done")
				h.wantOutcome(r.Key.ID, store.Waiting)
				if after := h.number(r.Number); after.State != store.StateFailedRetryable {
					t.Errorf("row %d is %s", r.Number, after.State)
				}
			}
			h.wantActs(b.Number)
			h.wantActs(second.Number)
			if after := h.number(second.Number); after.State != store.StateParked || after.Revision != second.Revision {
				t.Errorf("the conflict is %+v", after)
			}
			h.wantKinds(h.asks(h.print("b", 1)), already(store.Parked))
		})
	t.Run("many_rows_are_discarded_at_once",
		"A discard of many rows closes each with its marker, also both rows of one identity, and says of each other row why not.",
		func(t *T) {
			h := s.opened(t)
			a, closed := h.park("a"), h.discards(h.park("closed"))
			first, second := h.twins("twin")
			h.retries(second)
			second = h.number(second.Number)
			errs := h.inbox().Discard(t.context(), act("discard"), a.Seen(), closed.Seen(), second.Seen(), h.number(first.Number).Seen())
			h.wantEach(errs, nil, semel.ErrState, nil, nil)
			for _, r := range []store.StoredRow{a, first} {
				h.wantActs(r.Number, "discard done")
			}
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Discarded))
			h.wantKinds(h.asks(h.print("twin", 1)), already(store.Discarded))
		})
}

// wantEach fails unless the errors are these, one by one.
func (h *fixture[Tx]) wantEach(got []error, want ...error) {
	h.t.Helper()
	if len(got) != len(want) {
		h.t.Fatalf("%d errors for %d rows: %v", len(got), len(want), got)
	}
	for i, err := range got {
		if !errors.Is(err, want[i]) {
			h.t.Errorf("row %d of the act: %v, want %v", i, err, want[i])
		}
	}
}
