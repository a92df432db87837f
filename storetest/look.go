package storetest

import (
	"strings"

	"github.com/semel-go/semel/store"
)

// looks asks what became of marks, outside of any transaction.
func (h *fixture[Tx]) looks(marks ...store.Mark) []store.Verdict {
	h.t.Helper()
	v, err := h.Store.(store.Leases).LookUpMarkers(h.t.context(), marks)
	h.t.must(err)
	if len(v) != len(marks) {
		h.t.Fatalf("%d marks have %d verdicts", len(marks), len(v))
	}
	return v
}

// looked are the laws of a look at markers.
func (s suite[Tx]) looked(t *T) {
	t.Run("case_16_a_look_says_what_is_committed",
		"Of each mark it says whether its identity is marked, and as what, as the mark itself would be answered; and it writes nothing.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1), h.mark("none"))
			h.park("parked")
			long := strings.Repeat("long", 100)
			h.deliver(h.print(long, 1))
			for range 2 {
				v := h.looks(h.print("b", 1), h.print("a", 1), h.print("a", 2), h.print("parked", 1), h.print(long, 1), h.print("a", 1), h.mark("none"))
				h.wantKinds(v, fresh, already(store.Applied), conflict, already(store.Parked), already(store.Applied), already(store.Applied), already(store.Applied))
			}
			h.wantKinds(h.looks())
			h.wantKinds(h.asks(h.print("b", 1)), fresh)
		})
	t.Run("case_5_a_look_waits_for_nobody",
		"A mark in flight elsewhere is not to be seen before its commit, and after a rollback never.",
		func(t *T) {
			h := s.opened(t)
			b, _ := h.begin(h.print("a", 1))
			h.wantKinds(h.looks(h.print("a", 1)), fresh)
			b.Rollback(t.context())
			h.wantKinds(h.looks(h.print("a", 1)), fresh)
			b, _ = h.begin(h.print("a", 1))
			h.commit(b, store.Ending{})
			h.wantKinds(h.looks(h.print("a", 1)), already(store.Applied))
		})
}
