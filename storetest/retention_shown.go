package storetest

import (
	"time"

	"github.com/semel-go/semel/store"
)

// shown are the cases of what people and cron jobs are told.
func (s suite[Tx]) shown(t *T) {
	t.Run("H3_a_dry_run_counts_and_changes_nothing", "A call that only counts says what the next one removes.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		h.deliver(h.print("a", 1), h.print("b", 1))
		ctx := h.t.context()
		for counted := int64(0); counted < 2; moment(ctx) {
			h.t.must(h.reaper().Progressed(ctx, "billing", nil))
			sum, over := store.Reaped{}, false
			for !over {
				o := store.Reaping{Consumer: "billing", Most: 10, After: sum.Next, DryRun: true}
				r, err := h.reaper().Reap(ctx, o)
				h.t.must(err)
				over = sum.Add(o, r)
			}
			counted = sum.Markers
		}
		h.wantKinds(h.asks(h.print("a", 1), h.print("b", 1), h.aged("c", longAgo)), already(store.Applied), already(store.Applied), fresh)
		h.reaped(2)
	})
	t.Run("H3_how_far_behind_the_reaper_is_can_be_asked", "The store tells what stands of each consumer: policy, progress, cutoff, and the first that is due.", func(t *T) {
		h := s.opened(t)
		policy := store.Retention{Consumer: "billing", Keep: soon, Bodies: time.Minute, Horizon: 0, Why: "a test"}
		h.retain(policy)
		h.deliver(h.print("a", 1))
		moment(h.t.context())
		h.t.must(h.reaper().Progressed(h.t.context(), "billing", nil))
		k := h.kept()
		if k.Retention != policy || k.Progress.IsZero() || k.First.IsZero() || !k.First.Before(k.Cutoff) || !k.Low.IsZero() || k.LastDay != 1 || k.Held != "" {
			t.Errorf("it says %+v", k)
		}
		h.reaped(1)
		before := k.Cutoff
		if at, err := h.reaper().Advance(h.t.context(), "billing"); err != nil || at.Before(k.Cutoff) || !at.Equal(h.kept().Low) {
			t.Errorf("the low-water mark is raised to %v, and is %v, %v", at, h.kept().Low, err)
		}
		if k = h.kept(); !k.First.IsZero() && k.First.Before(before) || k.Low.IsZero() || k.LastDay != 0 {
			t.Errorf("after the reaper it says %+v", k)
		}
		if all, err := h.reaper().Retentions(h.t.context(), ""); err != nil || len(all) != 1 {
			t.Errorf("of all it says %+v, %v", all, err)
		}
	})
}
