package simulator

import (
	"testing"

	"github.com/semel-go/semel/internal/simulator/plan"

	"github.com/semel-go/semel/internal/simulator/chance"
)

func TestSeedsHaveTheFeaturesOfTheirModes(t *testing.T) {
	met := map[plan.Mode]int{}
	for seed := range uint64(300) {
		w := newWorld(chance.FromSeed(seed+1), Real)
		w.start()
		has := map[plan.Mode]bool{"": true, plan.Calls: w.Plan.Calls || w.sender != nil, plan.Steps: w.Plan.Steps > 0, plan.Intents: w.sender != nil, plan.Replays: w.Plan.Replays(), plan.Twins: w.Plan.Twins, plan.Clocks: w.Plan.Clocks}
		for mode, want := range has {
			if met[mode]++; mode.Has(seed+1) != want {
				t.Errorf("seed %d has %q: %v", seed+1, mode, want)
			}
			if !want {
				met[mode]--
			}
		}
	}
	for _, mode := range []plan.Mode{plan.Calls, plan.Steps, plan.Intents, plan.Replays, plan.Twins, plan.Clocks} {
		if met[mode] < 10 || met[mode] > 150 {
			t.Errorf("%d of 300 seeds have %q", met[mode], mode)
		}
	}
}
