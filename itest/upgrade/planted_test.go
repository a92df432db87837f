//go:build unix

package upgrade

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/proof"
)

// The ledger must detect a release that stores data in a different way than the other release.
func TestAPlantedFaultIsFound(t *testing.T) {
	earlier, present := neighbourReleases(t)
	for name, c := range map[string]struct {
		plant Plant
		found func(Ledger) bool
	}{
		"tables of its own":                 {Plant{Prefix: "other_"}, func(l Ledger) bool { return l.Doubled > 0 && l.Unmarked > 0 }},
		"another rule for the fingerprints": {Plant{Fingerprint: `"body:/amount"`}, func(l Ledger) bool { return l.Rows < l.ExpectedRows || l.Uncounted != 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spoiled := present
			spoiled.Plant = c.plant
			ledger := prove(t, newFileStore, earlier, spoiled, 400, 3)
			if !c.found(ledger) || ledger.Fault() == nil {
				t.Errorf("the ledger finds %v", ledger.Fault())
			}
		})
	}
}

func TestALedgerOfNeighboursIsAProofOnlyIfNothingIsWrong(t *testing.T) {
	good := Ledger{Order: [2]string{"a", "b"}, Expected: 5, Applied: 5, Rows: 3, ExpectedRows: 3, Copies: 4, LeastCopies: 4,
		Kills: 6, Open: 2, By: map[string]int{"a": 2, "b": 3}, Met: map[string]int{"a": 1, "b": 1}}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":        func(l *Ledger) { l.Lost, l.Applied = 1, 4 },
		"doubled":     func(l *Ledger) { l.Doubled = 1 },
		"unmarked":    func(l *Ledger) { l.Unmarked = 1 },
		"hollow":      func(l *Ledger) { l.Hollow = 1 },
		"parked less": func(l *Ledger) { l.Rows = 2 },
		"parked more": func(l *Ledger) { l.Rows = 4 },
		"uncounted":   func(l *Ledger) { l.Copies = 3 },
		"later":       func(l *Ledger) { l.Uncounted = 1 },
		"unretried":   func(l *Ledger) { l.Retried = 1 },
		"guards":      func(l *Ledger) { l.Guards = 1 },
		"astray":      func(l *Ledger) { l.Astray = 1 },
		"again":       func(l *Ledger) { l.Again = map[string]int{"b": 1} },
		"tame":        func(l *Ledger) { l.Open = 1 },
		"no kills":    func(l *Ledger) { l.Kills, l.Open = 0, 0 },
		"one alone":   func(l *Ledger) { l.By = map[string]int{"b": 3} },
		"never met":   func(l *Ledger) { l.Met = map[string]int{"a": 1} },
	})
}

func TestACommitThatIsNotHereIsNamedWithHowToGetIt(t *testing.T) {
	commit := strings.Repeat("0", 40)
	_, _, err := Neighbours(t.Context(), commit, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), commit) || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("a commit that is not here: %v", err)
	}
}
