//go:build unix

package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

func goodLedger() Ledger {
	return Ledger{Messages: 5, Tally: proof.Tally{Balance: ledger.Balance{Expected: 10, Applied: 10}},
		planned: []string{"kill", "freeze", "kill", failover}, Faults: map[string]int{"kill": 2, "freeze": 1, failover: 1}}
}

func TestALedgerIsAProofOnlyIfNothingIsWrongAndEachFaultHappened(t *testing.T) {
	proof.Spoil(t, goodLedger(), map[string]func(*Ledger){
		"lost":          func(l *Ledger) { l.Lost, l.Applied = 1, 9 },
		"doubled":       func(l *Ledger) { l.Doubled = 1 },
		"stuck":         func(l *Ledger) { l.Stuck = 1 },
		"foreign":       func(l *Ledger) { l.Foreign = 1 },
		"counters":      func(l *Ledger) { l.Astray = 1 },
		"guards":        func(l *Ledger) { l.Guards = 1 },
		"offsets":       func(l *Ledger) { l.Backwards = 1 },
		"behind":        func(l *Ledger) { l.Behind = 1 },
		"contradiction": func(l *Ledger) { l.Denied = 1 },
		"one consumer":  func(l *Ledger) { l.Expected, l.Applied = 5, 5 },
		"no messages":   func(l *Ledger) { l.Messages, l.Expected, l.Applied = 0, 0, 0 },
		"one kill":      func(l *Ledger) { l.Faults = map[string]int{"kill": 1, "freeze": 1, failover: 1} },
		"no failover":   func(l *Ledger) { l.Faults = map[string]int{"kill": 2, "freeze": 1} },
	})
}

func TestEachRoundHasEveryFaultInTheOrderOfTheSeed(t *testing.T) {
	p := Proof{For: time.Hour, Seed: 3}
	kinds, names := len(p.faults()), p.planned()
	if len(names) != 300 || kinds != 10 {
		t.Fatalf("%d faults of %d kinds in an hour, want 300 of 10", len(names), kinds)
	}
	for round := range slices.Chunk(names, kinds) {
		if slices.Sort(round); len(slices.Compact(round)) != kinds {
			t.Errorf("a round has %v", round)
		}
	}
	names = p.planned()
	if again := p.planned(); !slices.Equal(names, again) {
		t.Error("the same seed gave two orders")
	}
	if p.Seed = 4; slices.Equal(names, p.planned()) {
		t.Error("two seeds gave the same order")
	}
	if p.For = time.Minute; len(p.planned()) != kinds {
		t.Errorf("a minute has %d faults, want each kind once", len(p.planned()))
	}
}

func TestAllFaultsHappenWhileMessagesArePublished(t *testing.T) {
	r := &run{Proof: Proof{For: 10 * time.Minute, Seed: 1}}
	all := r.schedule()
	if len(all) != len(r.ledger.planned) || len(all) != 51 {
		t.Fatalf("%d events and %d planned faults, want 51", len(all), len(r.ledger.planned))
	}
	for _, e := range all {
		if e.At < 0.04 || e.At > 0.94 {
			t.Errorf("a fault at %v of the time", e.At)
		}
	}
}

func TestAPlainLoopGetsOnlyFaultsOfItsProcess(t *testing.T) {
	r := &run{Proof: Proof{For: time.Minute, Plant: proof.SettleFirst}}
	r.schedule()
	names := r.ledger.planned
	if slices.Sort(names); fmt.Sprint(slices.Compact(names)) != "[freeze kill rebalance]" {
		t.Errorf("%v", names)
	}
}

func TestEachMessageHasAnEffectForEachConsumer(t *testing.T) {
	p := Proof{For: time.Second, Rate: 3}
	if n := len(slices.Compact(slices.Sorted((&run{Proof: p}).effects()))); n != 6 {
		t.Errorf("%d effects, want 6", n)
	}
	p.Plant = proof.SettleFirst
	if n := len(slices.Collect((&run{Proof: p}).effects())); n != 3 {
		t.Errorf("%d effects of a plain loop, want 3", n)
	}
}
