package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/semel-go/semel/store"
)

var errHandler = errors.New("the handler failed")

// marks are the laws of a batch of marks.
func (s suite[Tx]) marks(t *T) {
	t.Run("law_1_marker_and_effect_commit_together",
		"A marker and its effect become visible in one commit.",
		func(t *T) {
			h := s.opened(t)
			b, v := h.begin(h.mark("a"))
			h.wantKinds(v, fresh)
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			h.wantCount("a", 0)
			h.commit(b, store.Ending{})
			h.wantCount("a", 1)
			h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
		})
	t.Run("trap_1_a_redelivery_after_the_commit_is_a_duplicate",
		"Whatever is delivered again after its commit finds its marker and has no second effect.",
		func(t *T) {
			h := s.opened(t)
			h.wantKinds(h.deliver(h.mark("a")), fresh)
			for range 3 {
				h.wantKinds(h.deliver(h.mark("a")), already(store.Applied))
			}
			h.wantCount("a", 1)
		})
	t.Run("trap_5_a_second_copy_from_the_producer_is_a_duplicate",
		"Identity alone decides: two messages of the broker with one identity have one effect, whether it calls them redelivered or not.",
		func(t *T) {
			h := s.opened(t)
			h.wantKinds(h.deliver(h.print("a", 1), h.mark("b")), fresh, fresh)
			h.wantKinds(h.deliver(h.mark("c"), h.print("a", 1)), fresh, already(store.Applied))
			h.wantCount("a", 1)
		})
}

// setbacks are the laws of batches that fail.
func (s suite[Tx]) setbacks(t *T) {
	t.Run("law_3_a_rollback_leaves_nothing",
		"After a rollback neither marker nor effect is left, and the message is fresh.",
		func(t *T) {
			h := s.opened(t)
			for range 3 {
				b, v := h.begin(h.markAll("a", "b")...)
				h.wantKinds(v, fresh, fresh)
				h.apply(b, h.markAll("a", "b"), v)
				b.Rollback(t.context())
			}
			h.wantCount("a", 0)
			h.deliver(h.mark("a"))
			h.wantCount("a", 1)
		})
	t.Run("trap_T14_a_failure_after_the_mark_and_before_the_effect_loses_nothing",
		"A message that was marked and whose handler then failed runs again.",
		func(t *T) {
			h := s.opened(t)
			b, _ := h.begin(h.mark("a"))
			b.Rollback(t.context())
			h.wantKinds(h.deliver(h.mark("a")), fresh)
			h.wantCount("a", 1)
		})
}

// mixtures are the laws of batches with several fates.
func (s suite[Tx]) mixtures(t *T) {
	t.Run("trap_6_duplicates_inside_one_batch_have_one_effect",
		"Of equal identities in one batch the first is fresh and the others are duplicates.",
		func(t *T) {
			h := s.opened(t)
			v := h.deliver(h.markAll("b", "a", "b", "a", "a")...)
			h.wantKinds(v, fresh, fresh, already(store.Applied), already(store.Applied), already(store.Applied))
			h.wantCount("a", 1)
			h.wantCount("b", 1)
		})
	t.Run("trap_T12_duplicates_at_random_places_harm_no_neighbour",
		"Duplicates anywhere in a batch are named as such, and exactly the others are fresh.",
		func(t *T) { s.scattered(t) })
	t.Run("trap_10_the_outcome_of_a_marker_is_told",
		"That a marker exists does not mean that its message was handled: the verdict names the outcome.",
		func(t *T) {
			h := s.opened(t)
			outcomes := []store.Outcome{store.Applied, store.Parked, store.DeadLettered, store.Discarded}
			for _, o := range outcomes {
				m := h.mark(fmt.Sprint(o))
				m.As = o
				h.deliver(m)
			}
			for _, o := range outcomes {
				h.wantKinds(h.asks(h.mark(fmt.Sprint(o))), already(o))
			}
		})
	t.Run("trim_takes_marks_back",
		"A trimmed mark is as if it had never been written; the others of its batch stay.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.mark("old"))
			marks := h.markAll("a", "b", "c", "old")
			b, v := h.begin(marks...)
			h.wantKinds(v, fresh, fresh, fresh, already(store.Applied))
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			h.commit(b, store.Ending{Trim: []int{1, 2, 3}})
			h.wantKinds(h.asks(marks...), already(store.Applied), fresh, fresh, already(store.Applied))
			h.wantCount("a", 1)
		})
}

func (s suite[Tx]) scattered(t *T) {
	h := s.opened(t)
	random := rand.New(rand.NewPCG(12, 12))
	seen := map[string]bool{}
	for _, n := range []int{1, 2, 50, 499, 500, 501, 1203} {
		marks := make([]store.Mark, n)
		want := make([]store.Verdict, n)
		for i := range marks {
			id := fmt.Sprint(random.IntN(3000))
			marks[i], want[i] = h.mark(id), fresh
			if seen[id] {
				want[i] = already(store.Applied)
			}
			seen[id] = true
		}
		h.wantKinds(h.deliver(marks...), want...)
	}
	for id := range seen {
		h.wantCount(id, 1)
	}
}
