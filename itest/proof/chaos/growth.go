package chaos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/semel-go/semel/itest/proof/ledger"
)

// sample has the sizes at one moment. The sizes of the processes are sums.
type sample struct{ resident, goroutines, connections, tables, indexes int64 }

// Growth compares the largest sizes in the two halves of a run.
type Growth struct {
	Samples     int    `json:"samples"`
	Resident    Halves `json:"resident_bytes"`
	Goroutines  Halves `json:"goroutines"`
	Connections Halves `json:"connections"`
	Tables      Halves `json:"table_bytes"`
	Indexes     Halves `json:"index_bytes"`
}

// Halves has the maximum of a size in each half of a run.
type Halves struct {
	First  int64 `json:"most_in_first_half"`
	Second int64 `json:"most_in_second_half"`
}

// mostGrowth is the growth in percent that counts as noise.
const mostGrowth = 10

// newGrowth compares the samples of the first half with those of the second half.
func newGrowth(all []sample) Growth {
	half := len(all) / 2
	compare := func(size func(sample) int64) (h Halves) {
		for i, s := range all {
			if i < half {
				h.First = max(h.First, size(s))
			} else {
				h.Second = max(h.Second, size(s))
			}
		}
		return h
	}
	return Growth{Samples: len(all),
		Resident:    compare(func(s sample) int64 { return s.resident }),
		Goroutines:  compare(func(s sample) int64 { return s.goroutines }),
		Connections: compare(func(s sample) int64 { return s.connections }),
		Tables:      compare(func(s sample) int64 { return s.tables }),
		Indexes:     compare(func(s sample) int64 { return s.indexes }),
	}
}

// Wrong returns an error if a size grew in the second half.
func (g Growth) Wrong() error {
	return cmp.Or(g.Resident.grew("resident bytes"), g.Goroutines.grew("goroutines"), g.Connections.grew("connections"),
		g.Tables.grew("bytes of tables"), g.Indexes.grew("bytes of indexes"))
}

// Fault returns the error of Wrong, or an error if a size was not measured.
func (g Growth) Fault() error {
	all := []Halves{g.Resident, g.Goroutines, g.Connections, g.Tables, g.Indexes}
	least := slices.MinFunc(all, func(a, b Halves) int { return cmp.Compare(min(a.First, a.Second), min(b.First, b.Second)) })
	return cmp.Or(g.Wrong(), ledger.AtLeast(10, g.Samples, "samples"), ledger.AtLeast(1, int(min(least.First, least.Second)), "of a size"))
}

func (h Halves) grew(what string) error {
	if h.Second*100 > h.First*(100+mostGrowth) {
		return fmt.Errorf("%s grew from %d in the first half to %d in the second half, by more than %d %%", what, h.First, h.Second, mostGrowth)
	}
	return nil
}
