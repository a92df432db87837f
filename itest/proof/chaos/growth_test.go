//go:build unix

package chaos

import (
	"testing"

	"github.com/semel-go/semel/itest/proof"
)

// samples returns samples whose sizes are multiples of the given numbers.
func samples(sizes ...int64) (all []sample) {
	for _, n := range sizes {
		all = append(all, sample{resident: 1000 * n, goroutines: n, connections: n, tables: 100 * n, indexes: 10 * n})
	}
	return all
}

func TestASizeMayGrowByATenthOfTheFirstHalfsMaximum(t *testing.T) {
	for name, c := range map[string]struct {
		all  []sample
		grew bool
	}{
		"constant":                  {samples(50, 50, 50, 50), false},
		"grows in the first half":   {samples(10, 100, 100, 100), false},
		"falls after a peak":        {samples(100, 50, 60, 70), false},
		"grows by a tenth":          {samples(90, 100, 110, 100), false},
		"grows by more":             {samples(90, 100, 111, 100), true},
		"grows only at the end":     {samples(100, 100, 100, 112), true},
		"an odd number of samples":  {samples(100, 100, 112), true},
		"the middle is second half": {samples(100, 112, 100), true},
	} {
		if err := newGrowth(c.all).Wrong(); (err != nil) != c.grew {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASoakIsAProofOnlyIfNothingGrewAndMarkersWereRemoved(t *testing.T) {
	growth := newGrowth(samples(100, 100, 100, 100, 100, 100, 100, 100, 100, 100))
	l := goodLedger()
	l.planned = nil
	good := SoakLedger{Ledger: l, Growth: growth, Removed: 1}
	proof.Spoil(t, good, map[string]func(*SoakLedger){
		"lost":        func(l *SoakLedger) { l.Lost, l.Applied = 1, 9 },
		"resident":    func(l *SoakLedger) { l.Resident.Second *= 2 },
		"goroutines":  func(l *SoakLedger) { l.Goroutines.Second *= 2 },
		"connections": func(l *SoakLedger) { l.Connections.Second *= 2 },
		"tables":      func(l *SoakLedger) { l.Tables.Second *= 2 },
		"indexes":     func(l *SoakLedger) { l.Indexes.Second *= 2 },
		"unmeasured":  func(l *SoakLedger) { l.Indexes = Halves{} },
		"few samples": func(l *SoakLedger) { l.Growth.Samples = 9 },
		"unreaped":    func(l *SoakLedger) { l.Removed = 0 },
	})
}
