//go:build unix

package chaos

import (
	"testing"

	"github.com/semel-go/semel/itest/proof"
)

// samples returns samples whose sizes are multiples of the given numbers.
func samples(sizes ...int64) (all []sample) {
	for _, n := range sizes {
		all = append(all, sample{"bytes": 1000 * n, "goroutines": n, "connections": n, "table_bytes": 100 * n, "index_bytes": 10 * n})
	}
	return all
}

func TestTheMedianMayBeATenthAboveTheFirstHalfsMaximum(t *testing.T) {
	for name, c := range map[string]struct {
		all  []sample
		grew bool
	}{
		"constant":                  {samples(50, 50, 50, 50), false},
		"grows in the first half":   {samples(10, 100, 100, 100), false},
		"falls after a peak":        {samples(100, 50, 60, 70), false},
		"grows by a tenth":          {samples(90, 100, 110, 110), false},
		"grows by more":             {samples(90, 100, 111, 111), true},
		"grows all the time":        {samples(100, 120, 140, 160, 180, 200), true},
		"has a peak at the end":     {samples(100, 100, 100, 100, 100, 150), false},
		"has peaks half the time":   {samples(100, 100, 100, 150), true},
		"the middle is second half": {samples(100, 112, 112), true},
	} {
		if err := newGrowth(c.all).Wrong(); (err != nil) != c.grew {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASoakIsAProofOnlyIfNothingGrewAndMarkersWereRemoved(t *testing.T) {
	even := samples(100, 100, 100, 100, 100, 100, 100, 100, 100, 100)
	l := goodLedger()
	l.planned = nil
	good := SoakLedger{Ledger: l, Growth: newGrowth(even), Removed: 1}
	proof.Spoil(t, good, map[string]func(*SoakLedger){
		"lost":        func(l *SoakLedger) { l.Lost, l.Applied = 1, 9 },
		"grown":       func(l *SoakLedger) { l.Growth = newGrowth(append(even, samples(130, 130, 130, 130)...)) },
		"few samples": func(l *SoakLedger) { l.Growth = newGrowth(even[1:]) },
		"one sample":  func(l *SoakLedger) { l.Growth = newGrowth(even[:1]) },
		"few sizes":   func(l *SoakLedger) { l.Sizes = map[string]Halves{"goroutines": {1, 1}} },
		"unmeasured":  func(l *SoakLedger) { l.Growth = newGrowth(samples(make([]int64, 10)...)) },
		"unreaped":    func(l *SoakLedger) { l.Removed = 0 },
	})
}
