package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-go/semel/itest/proof/ledger"
)

// sample has sizes at one moment, by name.
type sample map[string]int64

// Growth compares the sizes in the two halves of a run.
type Growth struct {
	Samples int               `json:"samples"`
	Sizes   map[string]Halves `json:"sizes"`
}

// Halves has the maximum of a size in the first half of a run and the median in the second half. A leak raises the
// median; a short peak on a busy machine does not.
type Halves struct {
	First  int64 `json:"maximum_in_first_half"`
	Second int64 `json:"median_in_second_half"`
}

// newGrowth compares the first half of the samples with the second half. From one sample nothing can be learned.
func newGrowth(all []sample) Growth {
	g := Growth{Samples: len(all), Sizes: map[string]Halves{}}
	if len(all) < 2 {
		return g
	}
	for name := range all[0] {
		var sizes []int64
		for _, s := range all {
			sizes = append(sizes, s[name])
		}
		first, second := sizes[:len(sizes)/2], sizes[len(sizes)/2:]
		slices.Sort(second)
		g.Sizes[name] = Halves{slices.Max(first), second[len(second)/2]}
	}
	return g
}

// mostGrowth is the growth in percent that counts as noise.
const mostGrowth = 10

// Wrong returns an error if a size grew in the second half.
func (g Growth) Wrong() error {
	for _, name := range slices.Sorted(maps.Keys(g.Sizes)) {
		if h := g.Sizes[name]; h.Second*100 > h.First*(100+mostGrowth) {
			return fmt.Errorf("%s grew from %d in the first half to %d in the second half, by more than %d %%", name, h.First, h.Second, mostGrowth)
		}
	}
	return nil
}

// Fault returns the error of Wrong, or an error if too little was measured.
func (g Growth) Fault() error {
	err := cmp.Or(g.Wrong(), ledger.AtLeast(10, g.Samples, "samples"), ledger.AtLeast(5, len(g.Sizes), "sizes"))
	for name, h := range g.Sizes {
		err = cmp.Or(err, ledger.AtLeast(1, int(h.Second), name))
	}
	return err
}
