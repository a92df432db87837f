//go:build unix

package keyed

import (
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

func TestB11ProcessesThatAreKilledAndFrozenCallOnceUnlessALeaseEnded(t *testing.T) {
	ledger, err := Proof{Deliveries: 3_000, Messages: 1_200, Kills: 2, Freezes: 1, Restarts: 1, Seed: 1}.Run(t.Context(), proof.InTest(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Fault(); err != nil {
		t.Errorf("%v: %+v", err, ledger)
	}
}

func TestALedgerIsAProofOnlyIfNothingIsWrong(t *testing.T) {
	proof.Spoil(t, Ledger{Kills: 5, Repeated: 3, leastKills: 5, leastRepeated: 1}, map[string]func(*Ledger){
		"lost":        func(l *Ledger) { l.Lost = 1 },
		"unfinished":  func(l *Ledger) { l.Unfinished = 1 },
		"unexplained": func(l *Ledger) { l.Unexplained = 1 },
		"other key":   func(l *Ledger) { l.OtherKeys = 1 },
		"tame":        func(l *Ledger) { l.Kills = 4 },
		"no repeats":  func(l *Ledger) { l.Repeated = 0 },
	})
}

func TestRepeatedCallsAreSortedByWhatExplainsThem(t *testing.T) {
	at := func(seconds int, key string, unanswered bool) call {
		return call{at: time.Unix(int64(1000+seconds), 0), key: key, unanswered: unanswered}
	}
	calls := map[string][]call{
		"once":    {at(0, "a", false)},
		"silent":  {at(0, "b", true), at(1, "b", false)},
		"lease":   {at(0, "c", false), at(5, "c", false)},
		"late":    {at(19, "d", false), at(20, "d", false)},
		"early":   {at(0, "e", false), at(1, "e", false)},
		"renamed": {at(0, "f", true), at(1, "g", false)},
		"never":   {at(0, "h", true)},
	}
	var l Ledger
	l.weigh(calls, 8, 5*time.Second, []time.Time{time.Unix(1019, 5e8)}, false)
	want := Ledger{Messages: 8, Calls: 12, Lost: 2, Repeated: 5, AfterSilence: 2, AfterLease: 1, Late: 1, Unexplained: 1, OtherKeys: 1}
	if l != want {
		t.Errorf("%+v\nwant %+v", l, want)
	}
}
