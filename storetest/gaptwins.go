package storetest

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// endsGap claims a row that may have waited for its turn for long enough, and parks it for its gap.
func (h *fixture[Tx]) endsGap(number int64) store.StoredRow {
	h.t.Helper()
	c := h.takes(number, long)
	if len(c) != 1 {
		h.t.Fatalf("row %d is not due", number)
	}
	place := store.Version{Stream: []byte("a"), Number: 3, Start: 1}
	h.wantLost(h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: c[0].Claim, Event: store.RowBlocked, Reason: semel.ReasonGap, Version: place}}))
	if c = h.takes(number, long); len(c) != 1 {
		h.t.Fatalf("row %d is not due, after it was blocked", number)
	}
	h.wantLost(h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: c[0].Claim, Event: store.RowParked, Reason: semel.ReasonGap}}))
	return h.number(number)
}

// gapTwins are the cases of two rows of one content: a copy of the first one came while a conflict
// had the marker.
func (s suite[Tx]) gapTwins(t *T) {
	for name, prepare := range map[string]func(h *fixture[Tx], copied store.StoredRow){
		"both_parked_for_it": func(h *fixture[Tx], copied store.StoredRow) { h.endsGap(h.retries(copied).Number) },
		"the_copy_due":       func(h *fixture[Tx], copied store.StoredRow) { h.retries(copied) },
	} {
		t.Run("law_16_one_of_two_rows_of_one_content_is_freed_from_a_gap/"+name,
			"Of two rows of one content at most one is freed, and it has the marker.",
			func(t *T) {
				h := s.opened(t)
				h.next("a", 1)
				first := h.endsGap(h.blocks("a", 3, 0).Number)
				h.conflict("a3", 2)
				other := h.retries(h.row("a3", true))
				h.conflict("a3", 1)
				var copied store.StoredRow
				for _, r := range h.list(store.RowFilter{IDs: []string{"a3"}}) {
					if r.Conflict && r.Fingerprint == first.Fingerprint {
						copied = r
					}
				}
				h.discards(other)
				prepare(h, copied)
				h.next("a", 2)
				due := int64(0)
				for _, r := range h.list(store.RowFilter{IDs: []string{"a3"}}) {
					if r.State.Outcome() != store.Waiting {
						continue
					}
					if due != 0 {
						t.Fatalf("rows %d and %d of one identity are due", due, r.Number)
					}
					due = r.Number
				}
				if due == 0 {
					return // and somebody may retry one
				}
				h.works(due)
				h.wantOutcome("a3", store.Applied)
				h.wantCount("a3", 1)
			})
	}
}
