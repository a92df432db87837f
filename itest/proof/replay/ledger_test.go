//go:build unix

package replay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

func TestALedgerIsAProofOnlyIfNothingIsWrongAndEnoughHappened(t *testing.T) {
	p := Quick()
	good := Ledger{Messages: p.Messages, Failed: p.Messages / 50, Letters: p.Messages / 50, Contradicted: p.Messages / 200, CommandKills: p.Shots.total(),
		ByFilter: p.Messages / 200, ByGroup: p.Messages / 200, Edited: p.Edited, Forecasts: 8, FromTopic: p.Messages / 800, Recovered: p.Messages / 500, Afterwards: 20, Offsets: proof.Offsets{Samples: 60}, least: p,
		Tally: proof.Tally{Balance: ledger.Balance{Expected: p.Messages, Applied: p.Messages}, Kills: 2 * p.Kills, Open: p.Kills, Seconds: 60}}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":       func(l *Ledger) { l.Lost, l.Applied = 1, p.Messages-1 },
		"doubled":    func(l *Ledger) { l.Doubled = 1 },
		"stuck":      func(l *Ledger) { l.Stuck = 1 },
		"foreign":    func(l *Ledger) { l.Foreign = 1 },
		"guards":     func(l *Ledger) { l.Guards = 1 },
		"rewound":    func(l *Ledger) { l.Backwards = 1 },
		"behind":     func(l *Ledger) { l.Behind = 1 },
		"mistaken":   func(l *Ledger) { l.Mistaken = []string{"applied"} },
		"twice":      func(l *Ledger) { l.Twice = 1 },
		"unlike":     func(l *Ledger) { l.Unlike = 1 },
		"healthy":    func(l *Ledger) { l.Failed = 1 },
		"unwritten":  func(l *Ledger) { l.Letters-- },
		"agreed":     func(l *Ledger) { l.Contradicted = 1 },
		"tame":       func(l *Ledger) { l.Kills-- },
		"closed":     func(l *Ledger) { l.Open-- },
		"patient":    func(l *Ledger) { l.CommandKills-- },
		"unfiltered": func(l *Ledger) { l.ByFilter = 1 },
		"ungrouped":  func(l *Ledger) { l.ByGroup = 1 },
		"unedited":   func(l *Ledger) { l.Edited-- },
		"blind":      func(l *Ledger) { l.Forecasts-- },
		"parted":     func(l *Ledger) { l.AtSwitch = 1 },
		"unbuilt":    func(l *Ledger) { l.Unbuilt = 1 },
		"topicless":  func(l *Ledger) { l.FromTopic = 1 },
		"gone":       func(l *Ledger) { l.Recovered = 1 },
		"still":      func(l *Ledger) { l.Afterwards = 1 },
		"unwatched":  func(l *Ledger) { l.Samples = 10 },
	})
}

func TestEachTransferIsPublishedAndCopiesAndOtherContentsFollow(t *testing.T) {
	p := Proof{Messages: 9000, Copies: 1800, Seed: 3}
	seen, copies, failing, others := map[int]bool{}, 0, 0, 0
	for _, part := range [][2]int{{0, untilRepair}, {untilRepair, untilRebuild}, {untilRebuild, untilEnd}} {
		plan := p.plan(p.firstAfter(part[0]), p.firstAfter(part[1]))
		for _, one := range plan {
			switch {
			case one.otherContent:
				others++
			case seen[one.transfer]:
				copies++
				if causeOf(one.transfer) != none {
					failing++
				}
			}
			if one.otherContent && !seen[one.transfer] {
				t.Errorf("transfer %d is contradicted before it comes", one.transfer)
			}
			seen[one.transfer] = true
		}
		if fmt.Sprint(plan) != fmt.Sprint(p.plan(p.firstAfter(part[0]), p.firstAfter(part[1]))) {
			t.Error("the same seed gave two plans")
		}
	}
	if len(seen) != 9000 || copies < 1500 || failing < 400 || others != 45 {
		t.Errorf("%d transfers, %d copies (%d of failing transfers), and %d other contents", len(seen), copies, failing, others)
	}
}

func TestTwoOfAHundredTransfersFailAndNoneOfThemIsContradictedOrForgotten(t *testing.T) {
	p := Proof{Messages: 40_000}
	causes := map[cause]int{}
	for i := range p.firstAfter(untilRepair) {
		causes[causeOf(i)]++
		if causeOf(i) != none && (isContradicted(i) || isForgotten(i)) || isContradicted(i) && isForgotten(i) {
			t.Errorf("transfer %d is contradicted or forgotten, too", i)
		}
		if causeOf(i) == noAccount && kind(i) != closing {
			t.Errorf("transfer %d closes no account", i)
		}
	}
	if causes[noAccount] != 275 || causes[tooMuch] != 275 || causes[unreadable] != 275 {
		t.Errorf("%v", causes)
	}
}

func TestWhatBalancesDifferIsCounted(t *testing.T) {
	lines := reference(3000)
	if n := countDifferences(lines, lines); n != 0 || len(lines) != accounts+10 {
		t.Errorf("%d of %d lines are unlike themselves", n, len(lines))
	}
	other := slices.Clone(lines)
	other[7] += "1"
	for name, all := range map[string][]string{"changed": other, "missing": lines[1:], "more": append(slices.Clone(lines), "z")} {
		if countDifferences(all, lines) != 1 {
			t.Errorf("%s: %d", name, countDifferences(all, lines))
		}
	}
	if Quick().Publish > time.Minute {
		t.Error("the quick form takes too long")
	}
}
