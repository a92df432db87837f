//go:build unix

package charge

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// goodLedger returns a ledger of a quick run without faults.
func goodLedger() Ledger {
	p := Quick()
	l := Ledger{Payments: 2000, Records: 2200, Copies: 200, Calls: 2500, Balance: ledger.Balance{Expected: 2000, Applied: 2000},
		Unknown: 300, ByKey: 290, ByAsking: 6, ByPerson: 4, NaiveDoubled: 9, NaiveLost: 3, Offsets: proof.Offsets{Samples: 60}, Accord: proof.Accord{Rows: 2000, Intents: 2000},
		Kills: 2 * p.Kills, At: map[string]int{}, Resumed: p.Freezes, Restarts: p.Restarts, Seconds: 60, least: p}
	for _, point := range consumerPoints {
		l.At[fmt.Sprintf("%s killed %s", aConsumer, point)] = 1
	}
	for _, point := range senderPoints {
		l.At[fmt.Sprintf("%s killed %s", aSender, point)] = 1
	}
	return l
}

func TestALedgerIsAProofOnlyIfNothingIsWrongAndEnoughHappened(t *testing.T) {
	proof.Spoil(t, goodLedger(), map[string]func(*Ledger){
		"lost":        func(l *Ledger) { l.Lost, l.Applied = 1, 1999 },
		"doubled":     func(l *Ledger) { l.Doubled = 1 },
		"stuck":       func(l *Ledger) { l.Stuck = 1 },
		"foreign":     func(l *Ledger) { l.Foreign = 1 },
		"unbooked":    func(l *Ledger) { l.Unbooked = 1 },
		"overbooked":  func(l *Ledger) { l.Overbooked = 1 },
		"unresolved":  func(l *Ledger) { l.Unresolved = 1 },
		"behind":      func(l *Ledger) { l.Behind = 1 },
		"unpublished": func(l *Ledger) { l.Expected, l.Applied = 1999, 1999 },
		"single":      func(l *Ledger) { l.Copies = 0 },
		"known":       func(l *Ledger) { l.Unknown = 10 },
		"keyless":     func(l *Ledger) { l.ByKey = 0 },
		"unasked":     func(l *Ledger) { l.ByAsking = 0 },
		"denied":      func(l *Ledger) { l.Denied = 1 },
		"unheard":     func(l *Ledger) { l.Intents = 1999 },
		"nobody":      func(l *Ledger) { l.ByPerson = 0 },
		"faithful":    func(l *Ledger) { l.NaiveDoubled = 0 },
		"keeper":      func(l *Ledger) { l.NaiveLost = 0 },
		"tame":        func(l *Ledger) { l.Kills = 0 },
		"nowhere":     func(l *Ledger) { l.At = map[string]int{} },
		"warm":        func(l *Ledger) { l.Resumed = 0 },
		"steady":      func(l *Ledger) { l.Restarts = 0 },
		"unwatched":   func(l *Ledger) { l.Samples = 0 },
	})
}

func TestEachPaymentIsPublishedAndCopiesFollow(t *testing.T) {
	plan := Proof{Payments: 900, Duplicates: 90, Seed: 3}.plan()
	seen, copies := map[int]bool{}, 0
	for _, payment := range plan {
		if seen[payment] {
			copies++
		}
		seen[payment] = true
	}
	if len(seen) != 900 || copies != 90 {
		t.Errorf("%d payments and %d copies", len(seen), copies)
	}
}

func TestThereIsAKillAtEachPointInEachRoundAndAFreezeInThree(t *testing.T) {
	r := &run{Proof: Proof{Rounds: 3}}
	killed, frozen := map[trap]int{}, map[trap]int{}
	for _, one := range r.newTraps(senderPoints) {
		if one.Freeze {
			frozen[one]++
		} else {
			killed[one]++
		}
	}
	for _, p := range senderPoints {
		if killed[trap{p, false}] != 3 || frozen[trap{p, true}] != 1 {
			t.Errorf("%s: %d kills and %d freezes", p, killed[trap{p, false}], frozen[trap{p, true}])
		}
	}
}
