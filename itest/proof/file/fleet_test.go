//go:build unix

package file

import (
	"testing"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

func TestProcessesOnPostgreSQLThatAreFrozenAndKilledLoseAndDoubleNothing(t *testing.T) {
	fleet := Fleet{Input: smallInput(), Batch: 20, Timeout: time.Second, Kills: 2, Open: 1, Restarts: 2}
	fleet.Input.Deliveries, fleet.Input.IDs = 4_000, 3_000
	ledger, err := fleet.Run(t.Context(), proof.InTest(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Fault(); err != nil {
		t.Errorf("%v: %+v", err, ledger)
	}
	if ledger.Kills != 2 || ledger.Restarts != 2 {
		t.Errorf("%+v", ledger)
	}
}

func TestALedgerOfAFleetIsAProofOnlyIfNothingIsWrong(t *testing.T) {
	good := FleetLedger{Tally: proof.Tally{Balance: ledger.Balance{Expected: 5, Applied: 5}, Open: 2, Frozen: true}, FrozenSeconds: 15, IdleSeconds: 15, least: 2}
	proof.Spoil(t, good, map[string]func(*FleetLedger){
		"lost":     func(l *FleetLedger) { l.Lost, l.Applied = 1, 4 },
		"doubled":  func(l *FleetLedger) { l.Doubled = 1 },
		"stuck":    func(l *FleetLedger) { l.Stuck = 1 },
		"astray":   func(l *FleetLedger) { l.Astray = 1 },
		"guards":   func(l *FleetLedger) { l.Guards = 1 },
		"tame":     func(l *FleetLedger) { l.Open = 1 },
		"resumed":  func(l *FleetLedger) { l.Frozen = false },
		"no owner": func(l *FleetLedger) { l.FrozenSeconds = 5 },
	})
}

func TestEveryReaderGetsAllDeliveriesInAnOrderOfItsOwn(t *testing.T) {
	in := smallInput()
	orders := map[string]bool{}
	for n := range members {
		first, second := in.parts(n)
		counts := map[int]int{}
		for _, id := range in.order() {
			counts[id]++
		}
		for _, id := range append(first, second...) {
			counts[id]--
		}
		for id, left := range counts {
			if left != 0 {
				t.Fatalf("reader %d has %d deliveries of %d too few", n, left, id)
			}
		}
		orders[webhooks.ID(first[0])+webhooks.ID(first[1])] = true
	}
	if len(orders) != members {
		t.Errorf("%d orders", len(orders))
	}
}
