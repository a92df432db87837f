//go:build unix

package kafka

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

func TestALedgerIsAProofOnlyIfNothingIsWrongAndEnoughHappened(t *testing.T) {
	p := Quick(Full())
	p.ForGood, p.BrokerFreezes = true, 1
	good := Ledger{Events: 5, FrozenSeconds: 15, Resumed: 1, BrokerRestarts: 1, BrokerFreezes: 1, Added: 1, Removed: 1, Redelivered: 1, Offsets: proof.Offsets{Samples: 60}, least: p,
		Tally: proof.Tally{Balance: ledger.Balance{Expected: 5, Applied: 5}, Open: p.Kills - 1, Frozen: true, Restarts: 1, Seconds: 60}}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":        func(l *Ledger) { l.Lost, l.Applied = 1, 4 },
		"doubled":     func(l *Ledger) { l.Doubled = 1 },
		"stuck":       func(l *Ledger) { l.Stuck = 1 },
		"unheld":      func(l *Ledger) { l.Unheld = 1 },
		"denied":      func(l *Ledger) { l.Denied = 1 },
		"foreign":     func(l *Ledger) { l.Foreign = 1 },
		"astray":      func(l *Ledger) { l.Astray = 1 },
		"guards":      func(l *Ledger) { l.Guards = 1 },
		"rewound":     func(l *Ledger) { l.Backwards = 1 },
		"behind":      func(l *Ledger) { l.Behind = 1 },
		"unpublished": func(l *Ledger) { l.Expected, l.Applied = 4, 4 },
		"tame":        func(l *Ledger) { l.Open-- },
		"warm":        func(l *Ledger) { l.Resumed = 0 },
		"thawed":      func(l *Ledger) { l.Frozen = false },
		"no owner":    func(l *Ledger) { l.FrozenSeconds = 5 },
		"broker":      func(l *Ledger) { l.BrokerRestarts = 0 },
		"flowing":     func(l *Ledger) { l.BrokerFreezes = 0 },
		"database":    func(l *Ledger) { l.Restarts = 0 },
		"alone":       func(l *Ledger) { l.Added = 0 },
		"loyal":       func(l *Ledger) { l.Removed = 0 },
		"smooth":      func(l *Ledger) { l.Redelivered = 0 },
		"unwatched":   func(l *Ledger) { l.Samples = 10 },
	})
}

func TestEachEventIsPublishedAndCopiesFollow(t *testing.T) {
	r := &run{Proof: Proof{Events: 900, Duplicates: 90, Seed: 3}}
	plan := r.plan()
	seen, copies := map[int]bool{}, 0
	for _, event := range plan {
		if seen[event] {
			copies++
		}
		seen[event] = true
	}
	if len(seen) != 900 || copies != 90 {
		t.Errorf("%d events and %d copies", len(seen), copies)
	}
	if fmt.Sprint(plan) != fmt.Sprint(r.plan()) {
		t.Error("the same seed gave two plans")
	}
}

func TestWhatHappensIsSpreadOverThePublishing(t *testing.T) {
	r := &run{Proof: Full()}
	events := r.events()
	earlier := func(a, b proof.Event) int { return cmp.Compare(a.At, b.At) }
	if want := r.Kills + r.Freezes + r.BrokerRestarts + r.DatabaseRestarts + 2*r.Changes + 1; len(events) != want {
		t.Errorf("%d events, not %d", len(events), want)
	}
	if first, last := slices.MinFunc(events, earlier).At, slices.MaxFunc(events, earlier).At; first < 0.04 || last > 0.9 {
		t.Errorf("from %v to %v of the time", first, last)
	}
	if Quick(Full()).Publish > time.Minute || len(webhooks.MadeUp(3, 4000)[2].Body) < 4000 {
		t.Error("the quick form takes too long, or its payloads are short")
	}
}
