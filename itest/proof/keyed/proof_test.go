//go:build unix

package keyed

import (
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
)

func TestB11ProcessesThatAreKilledAndFrozenCallOnceUnlessALeaseEnded(t *testing.T) {
	ledger := proof.Prove(proof.InTest(t), Proof{Deliveries: 3_000, Messages: 1_200, Kills: 2, Freezes: 1, Restarts: 1, Seed: 1}.Run)
	if err := ledger.Fault(); err != nil {
		t.Errorf("%v: %+v", err, ledger)
	}
}

func TestAServerThatForgetsAlthoughItSaysThatItIsDurableIsFound(t *testing.T) {
	ledger := proof.Prove(proof.InTest(t), Proof{Deliveries: 6_000, Messages: 2_400, Kills: 2, Restarts: 1, Forgets: true, Seed: 1}.Run)
	if ledger.Unexplained == 0 || ledger.Wrong() == nil {
		t.Errorf("the planted fault was not detected: %+v", ledger)
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
		return call{at: time.Unix(int64(1000+seconds), 0), member: "one", key: key, noAnswer: unanswered}
	}
	killed := faultRecord{member: "one", at: time.Unix(1100, 0)}
	calls := map[string][]call{
		"once":      {at(0, "a", false)},
		"silent":    {at(0, "b", true), at(1, "b", false)},
		"lease":     {at(99, "c", false), at(105, "c", false)},
		"soon":      {at(99, "s", false), at(101, "s", false)},
		"forgotten": {at(50, "w", false), at(90, "w", false)},
		"answered":  {at(0, "x", true), at(1, "x", false), at(40, "x", false)},
		"late":      {at(19, "d", false), at(20, "d", false)},
		"early":     {at(0, "e", false), at(1, "e", false)},
		"renamed":   {at(0, "f", true), at(1, "g", false)},
		"never":     {at(0, "h", true)},
	}
	var l Ledger
	l.weigh(calls, 11, 5*time.Second, []faultRecord{killed, {member: "one", at: time.Unix(1012, 0), thaw: time.Unix(1019, 5e8)}}, false)
	want := Ledger{Messages: 11, Calls: 19, Lost: 2, Repeated: 9, AfterSilence: 3, AfterLease: 1, Late: 1, Unexplained: 4, OtherKeys: 1}
	if l != want {
		t.Errorf("%+v\nwant %+v", l, want)
	}
}
