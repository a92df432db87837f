package storetest

import "github.com/semel-go/semel/store"

// contents are the laws of fingerprints.
func (s suite[Tx]) contents(t *T) {
	t.Run("trap_73_one_identity_with_another_content_is_a_conflict",
		"The same identity with another fingerprint is a conflict, in another batch and in the same.",
		func(t *T) {
			h := s.opened(t)
			v := h.deliver(h.print("a", 1), h.print("a", 2), h.print("a", 1))
			h.wantKinds(v, fresh, conflict, already(store.Applied))
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
			h.wantKinds(h.asks(h.print("a", 2)), conflict)
			h.wantCount("a", 1)
		})
	t.Run("law_10_a_conflict_is_told_whatever_the_outcome",
		"A marker of any outcome keeps its fingerprint and tells a conflict.",
		func(t *T) {
			h := s.opened(t)
			for _, o := range []store.Outcome{store.Applied, store.Parked, store.DeadLettered, store.Discarded} {
				m := h.print(string(rune('a'+o)), 1)
				m.As = o
				h.deliver(m)
				h.wantKinds(h.asks(h.print(string(m.ID), 2)), conflict)
			}
		})
	t.Run("case_14_a_changed_rule_makes_no_false_conflict",
		"Only fingerprints of one version are compared, and none equals every other.",
		func(t *T) {
			h := s.opened(t)
			newer, none := h.print("a", 9), h.mark("a")
			newer.Fingerprint.Version = 2
			h.deliver(h.print("a", 1))
			h.wantKinds(h.asks(newer), already(store.Applied))
			h.wantKinds(h.asks(none), already(store.Applied))
			h.deliver(h.mark("b"))
			h.wantKinds(h.asks(h.print("b", 1)), already(store.Applied))
		})
	t.Run("trap_74_every_bit_of_a_fingerprint_counts",
		"Two fingerprints differ if any byte of them does, the first and the last.",
		func(t *T) {
			h := s.opened(t)
			m := h.print("a", 1)
			h.deliver(m)
			for _, i := range []int{0, 15} {
				other := m
				other.Fingerprint.Sum[i] ^= 0x80
				h.wantKinds(h.asks(other), conflict)
			}
		})
}
