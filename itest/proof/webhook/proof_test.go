//go:build unix

package webhook

import (
	"maps"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
)

func TestMain(m *testing.M) { processes.OwnProgram(m, Command, Live) }

func TestWhatWasAnsweredWith2xxTakesEffectOnceUnderKills(t *testing.T) {
	t.Run("F3_a_provider_that_repeats_and_a_process_that_is_killed_at_each_point", func(t *testing.T) {
		p := Quick()
		p.Events, p.Publish, p.Kills = 400, 6*time.Second, 2
		l := proof.Prove(proof.InTest(t), p.Run)
		if err := l.Fault(); err != nil {
			t.Errorf("%v: %+v", err, l)
		}
	})
}

func TestPlantedFaultsAreFound(t *testing.T) {
	// Only the command itest/cmd/proof tests the fault plantLeaked, because this test links the binary again for each
	// fault.
	for plant, want := range map[string]string{plantEarly: "lost", plantForgetful: "doubled"} {
		t.Run("F3_"+plant, func(t *testing.T) {
			p := Quick()
			p.Kills, p.Rounds, p.Ends, p.Restarts, p.Events, p.Publish, p.Scale, p.Plant = 3, 0, 0, 0, 400, 4*time.Second, 60_000, plant
			l := proof.Prove(proof.InTest(t), p.Run)
			is := map[string]bool{"lost": l.Lost > 0, "doubled": l.Doubled > 0}
			if l.Wrong() == nil || !is[want] {
				t.Errorf("the planted fault was not detected: %v, %+v", l.Wrong(), l)
			}
		})
	}
}

func TestALedgerIsAProofOnlyIfNothingIsWrongAndEnoughHappened(t *testing.T) {
	at := map[string]int{}
	for _, p := range points {
		at[p.name] = 1
	}
	good := Ledger{Balance: ledger.Balance{Expected: 9, Applied: 9}, Counts: Counts{Again: 1, Unanswered: 1, Refused: 1}, Rows: 9,
		Kills: 1 + len(points), At: at, NaiveLost: 1, NaiveDoubled: 1, Ends: 1, Restarts: 1, least: Proof{Events: 9, Kills: 1, Rounds: 1, Ends: 1, Restarts: 1}}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":         func(l *Ledger) { l.Lost = 1 },
		"believed":     func(l *Ledger) { l.Believed = 1 },
		"a row":        func(l *Ledger) { l.Rows = 10 },
		"given up":     func(l *Ledger) { l.GivenUp = 1 },
		"few events":   func(l *Ledger) { l.Expected, l.Applied, l.Rows = 8, 8, 8 },
		"tame":         func(l *Ledger) { l.Kills-- },
		"never ended":  func(l *Ledger) { l.Ends = 0 },
		"no restarts":  func(l *Ledger) { l.Restarts = 0 },
		"a point":      func(l *Ledger) { l.At = maps.Clone(at); l.At[points[3].name] = 0 },
		"no forgeries": func(l *Ledger) { l.Refused = 0 },
		"no repeats":   func(l *Ledger) { l.Again = 0 },
		"all answered": func(l *Ledger) { l.Unanswered = 0 },
		"naive kept":   func(l *Ledger) { l.NaiveLost = 0 },
		"naive once":   func(l *Ledger) { l.NaiveDoubled = 0 },
	})
}
