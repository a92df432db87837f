package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// ids are pairwise different identities that stores have confused.
func ids() []string {
	random := rand.NewChaCha8([32]byte{79})
	all := []string{
		"a", "A", " ", "a ", " a", "a\t", "\x00", "a\x00", "a\x00b", "\xff", "\xff\xfe", "\xed\xa0\x80",
		"é", "e\u0301", "É", "ß", "ss", "ı", "i", "0", "00", "1", "01", "1.0", "null", "NULL", "''", "%", "_", `\`,
		"0190a5e2-7d0b-7c3e-8f00-0123456789ab", "0190A5E2-7D0B-7C3E-8F00-0123456789AB", "0190a5e27d0b7c3e8f000123456789ab",
		"\x01\x90\xa5\xe2\x7d\x0b\x7c\x3e\x8f\x00\x01\x23\x45\x67\x89\xab",
		"\x01\x01\x90\xa5\xe2\x7d\x0b\x7c\x3e\x8f\x00\x01\x23\x45\x67\x89\xab",
		"{0190a5e2-7d0b-7c3e-8f00-0123456789ab}", "0190a5e2-7d0b-7c3e-8f00-0123456789ag",
		"00000000-0000-0000-0000-000000000000", strings.Repeat("\x00", 16),
	}
	for _, n := range []int{255, 256, 511, 512, 513, 767, 768, 2704, 2705, 3072, semel.MaxID} {
		noise := make([]byte, n)
		_, _ = random.Read(noise)
		all = append(all, string(noise), strings.Repeat("x", n), strings.Repeat("x", n-1)+"y")
	}
	return all
}

// ids are those that the store holds.
func (s suite[Tx]) ids() []string {
	most := s.h.Can.LongestID
	return slices.DeleteFunc(ids(), func(id string) bool { return most > 0 && len(id) > most })
}

// identities are the laws of what makes two messages the same.
func (s suite[Tx]) identities(t *T) {
	t.Run("trap_78_ids_are_compared_as_bytes",
		"Ids that differ in any byte are different messages: case, normal form, space, NUL, notation.",
		func(t *T) { s.distinct(t) })
	t.Run("trap_79_ids_of_any_length_and_content_are_kept_apart",
		"Ids up to the longest are stored, also where an index could not hold them, and told apart by their last byte.",
		func(t *T) {
			h := s.opened(t)
			for _, id := range s.ids() {
				if len(id) > 200 {
					h.wantKinds(h.deliver(h.mark(id)), fresh)
					h.wantKinds(h.deliver(h.mark(id)), already(store.Applied))
				}
			}
		})
	t.Run("trap_88_an_id_whose_time_is_far_off_is_an_id_like_others",
		"The time in an id of version 7 decides nothing: of the year 1970, of 10889, and ten years to either side.",
		func(t *T) {
			h := s.opened(t)
			for _, id := range []string{"00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
				"01510b5f-a800-7000-8000-000000000001", "01d5c8a3-2c00-7000-8000-000000000001", "018f3c5e-6b00-7000-8000-000000000001"} {
				h.wantKinds(h.deliver(h.mark(id)), fresh)
				h.wantKinds(h.deliver(h.mark(id)), already(store.Applied))
			}
		})
	t.Run("trap_75_two_sources_do_not_share_ids",
		"Two sources of one id are two messages, and the empty source is one of them.",
		func(t *T) {
			s.apart(t, "billing", "a", 0, "billing", "b", 0)
			s.apart(t, "billing", "", 0, "billing", "b", 0)
		})
	if s.h.Can.LongestID > 0 {
		t.Run("an_id_that_the_store_cannot_hold_is_refused_before_it_is_marked",
			"FitIdentity takes the longest id as it is and refuses a longer one.",
			func(t *T) { s.longest(t) })
	}
	if s.h.Can.OneConsumer {
		t.Run("a_store_of_one_consumer_refuses_others",
			"Scope fails for another consumer and another generation.",
			func(t *T) { s.alone(t) })
		return
	}
	s.manyConsumers(t)
}

func (s suite[Tx]) manyConsumers(t *T) {
	t.Run("trap_T17_two_consumers_do_not_share_ids",
		"Two consumers of one id both see it fresh.",
		func(t *T) { s.apart(t, "billing", "shop", 0, "shipping", "shop", 0) })
	t.Run("two_generations_do_not_share_ids",
		"A rebuild's generation sees every message fresh.",
		func(t *T) { s.apart(t, "billing", "shop", 0, "billing", "shop", 1) })
	t.Run("a_boundary_between_consumer_and_source_is_kept",
		"Consumer and source are two things, however they are spelled together.",
		func(t *T) { s.apart(t, "ab", "c", 0, "a", "bc", 0) })
}

func (s suite[Tx]) longest(t *T) {
	fits := s.opened(t).Store.Limits().FitIdentity
	if fits == nil {
		t.Fatal("its store.Limits have no FitIdentity")
	}
	id := strings.Repeat("x", s.h.Can.LongestID)
	if fit, err := fits("shop", id); err != nil || fit != id {
		t.Errorf("the longest id is refused or changed: %v", err)
	}
	if _, err := fits("shop", id+"x"); err == nil {
		t.Error("a longer id is not refused")
	}
}

func (s suite[Tx]) alone(t *T) {
	h := s.opened(t)
	if _, err := h.Store.Scope(t.context(), "shipping", "shop", 0); err == nil {
		t.Error("another consumer is not refused")
	}
	if _, err := h.Store.Scope(t.context(), "billing", "shop", 1); err == nil && !s.h.Can.Days {
		t.Error("another generation is not refused")
	}
}

func (s suite[Tx]) distinct(t *T) {
	h := s.opened(t)
	all := s.ids()
	v := h.deliver(h.markAll(all...)...)
	for i := range all {
		if v[i].Kind != store.Fresh {
			t.Errorf("id %.40q is taken for another", all[i])
		}
	}
	for i, v := range h.asks(h.markAll(all...)...) {
		if !v.Already(store.Applied) {
			t.Errorf("id %.40q is not recognised: %s", all[i], v.Kind)
		}
	}
}

func (s suite[Tx]) apart(t *T, c1, s1 string, g1 int64, c2, s2 string, g2 int64) {
	h := s.opened(t)
	one, two := h.scopeOf(c1, s1, g1), h.scopeOf(c2, s2, g2)
	if one == two {
		t.Fatal(fmt.Sprint(c1, s1, g1, " and ", c2, s2, g2, " have one scope"))
	}
	m, n := h.mark("a"), h.mark("a")
	m.Scope, n.Scope = one, two
	h.wantKinds(h.deliver(m, n), fresh, fresh)
	h.wantCount("a", 2)
	h.wantKinds(h.asks(m, n), already(store.Applied), already(store.Applied))
}
