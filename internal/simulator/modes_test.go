package simulator

import (
	"testing"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
)

func TestModesAreWhatTheirSeedsHave(t *testing.T) {
	met := map[Mode]int{}
	for seed := range uint64(300) {
		w := newWorld(chance.FromSeed(seed+1), Real)
		w.start()
		has := map[Mode]bool{"": true, Calls: w.plan.Calls || w.sender != nil, Steps: w.plan.Steps > 0, Intents: w.sender != nil, Replays: w.plan.Replays(), Twins: w.plan.Twins, Clocks: w.plan.Clocks}
		for mode, want := range has {
			if met[mode]++; mode.Has(seed+1) != want {
				t.Errorf("seed %d has %q: %v", seed+1, mode, want)
			}
			if !want {
				met[mode]--
			}
		}
	}
	for _, mode := range []Mode{Calls, Steps, Intents, Replays, Twins, Clocks} {
		if met[mode] < 10 || met[mode] > 150 {
			t.Errorf("%d of 300 seeds have %q", met[mode], mode)
		}
	}
}

func TestASearchFindsTheSmallestSeedThatBreaksItsLaw(t *testing.T) {
	maker := sabotaged(func(s *spoiler, a machine.Action) []machine.Action {
		if r, ok := a.(machine.Rollback); ok {
			return []machine.Action{machine.Commit{Flight: r.Flight}}
		}
		return []machine.Action{a}
	})
	first, found := First(maker, Search{Start: 1, Seeds: 100})
	again, foundAgain := First(maker, Search{Start: first.Seed, Seeds: 1, Law: first.Broken.Law})
	if !found || !foundAgain || again.Seed != first.Seed {
		t.Errorf("seed %d (%v), and %d (%v) by its law", first.Seed, found, again.Seed, foundAgain)
	}
	if other, found := First(maker, Search{Start: first.Seed, Seeds: 100, Law: "no such law"}); found {
		t.Errorf("seed %d is found, and breaks another law", other.Seed)
	}
}
