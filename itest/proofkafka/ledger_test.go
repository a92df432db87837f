//go:build linux

package proofkafka

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semel-go/semel/itest/webhooks"
)

func TestALedgerIsAProofOnlyIfNothingIsWrongAndEnoughHappened(t *testing.T) {
	p := Quick(Full())
	p.ForGood, p.BrokerFreezes = true, 1
	good := Ledger{Events: 5, Expected: 5, Applied: 5, Open: p.Kills - 1, Resumed: 1, Frozen: true, BrokerRestarts: 1, BrokerFreezes: 1, DatabaseRestarts: 1,
		Added: 1, Removed: 1, Redelivered: 1, Samples: 60, Seconds: 60}
	if err := good.Fault(p.Least()); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Ledger){
		"lost":        func(l *Ledger) { l.Lost, l.Applied = 1, 4 },
		"doubled":     func(l *Ledger) { l.Doubled = 1 },
		"stuck":       func(l *Ledger) { l.Stuck = 1 },
		"foreign":     func(l *Ledger) { l.Foreign = 1 },
		"astray":      func(l *Ledger) { l.Astray = 1 },
		"guards":      func(l *Ledger) { l.Guards = 1 },
		"rewound":     func(l *Ledger) { l.Backwards = 1 },
		"behind":      func(l *Ledger) { l.Behind = 1 },
		"unpublished": func(l *Ledger) { l.Expected, l.Applied = 4, 4 },
		"tame":        func(l *Ledger) { l.Open-- },
		"warm":        func(l *Ledger) { l.Resumed = 0 },
		"thawed":      func(l *Ledger) { l.Frozen = false },
		"broker":      func(l *Ledger) { l.BrokerRestarts = 0 },
		"flowing":     func(l *Ledger) { l.BrokerFreezes = 0 },
		"database":    func(l *Ledger) { l.DatabaseRestarts = 0 },
		"alone":       func(l *Ledger) { l.Added = 0 },
		"loyal":       func(l *Ledger) { l.Removed = 0 },
		"smooth":      func(l *Ledger) { l.Redelivered = 0 },
		"unwatched":   func(l *Ledger) { l.Samples = 10 },
	} {
		bad := good
		spoil(&bad)
		if bad.Fault(p.Least()) == nil {
			t.Errorf("%s: %+v passes", name, bad)
		}
	}
}

func TestAnOffsetThatGoesBackOrVanishesIsNoted(t *testing.T) {
	o := offsets{highest: map[int32]int64{}}
	see := func(at map[int32]int64) {
		now := kadm.OffsetResponses{}
		for partition, offset := range at {
			now.Add(kadm.OffsetResponse{Offset: kadm.Offset{Topic: topic, Partition: partition, At: offset}})
		}
		o.note(now)
	}
	see(map[int32]int64{0: 5})
	see(map[int32]int64{0: 5, 1: 3})
	see(map[int32]int64{0: 9, 1: 3})
	if len(o.backwards) != 0 {
		t.Fatalf("nothing went back: %v", o.backwards)
	}
	see(map[int32]int64{0: 8, 1: 3})
	see(map[int32]int64{0: 8})
	if len(o.backwards) != 2 {
		t.Errorf("one offset went back and one vanished: %v", o.backwards)
	}
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
		t.Error("one seed gives two plans")
	}
}

func TestATerminalShowsTheHighestCount(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	terminal, err := openTerminal(log)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(terminal.end, "counter  9/s  behind 3  deliver")
	fmt.Fprint(terminal.end, "ies 41  applied 40\ncounter  9/s  deliveries 57  applied 40\n")
	terminal.given()
	terminal.wait()
	if got := terminal.deliveries(); got != 57 {
		t.Errorf("it shows %d deliveries, not 57", got)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "behind 3") {
		t.Errorf("the log says %q, %v", text, err)
	}
}

func TestWhatHappensIsSpreadOverThePublishing(t *testing.T) {
	r := &run{Proof: Full()}
	events := r.events()
	if want := r.Kills + r.Freezes + r.BrokerRestarts + r.DatabaseRestarts + 2*r.Changes + 1; len(events) != want {
		t.Errorf("%d events, not %d", len(events), want)
	}
	if first, last := events[0].at, events[len(events)-1].at; first < 0.04 || last > 0.9 {
		t.Errorf("from %v to %v of the time", first, last)
	}
	if Quick(Full()).Publish > time.Minute || len(webhooks.MadeUp(3, 4000)[2].Body) < 4000 {
		t.Error("the quick form takes too long, or its payloads are short")
	}
}
