package failover

import (
	"testing"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/workload"
)

func TestAFailoverUnderLoadNeitherLosesNorDoubles(t *testing.T) {
	for _, driver := range workload.Drivers() {
		t.Run(driver.Name, func(t *testing.T) {
			t.Run("trap_104_the_consumer_finds_the_server_that_takes_writes", func(t *testing.T) {
				l := proof.Prove(proof.InTest(t), Proof{Driver: driver, Before: 500, After: 500, Seed: 1}.Run)
				t.Logf("%+v", l)
				if err := l.Fault(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestALedgerIsAProofOnlyIfNothingIsWrong(t *testing.T) {
	good := Ledger{RivalsLedger: proof.RivalsLedger{Balance: ledger.Balance{Expected: 9, Applied: 9}, Markers: 9, NotReady: 1}}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":      func(l *Ledger) { l.Lost = 1 },
		"doubled":   func(l *Ledger) { l.Doubled = 1 },
		"set aside": func(l *Ledger) { l.SetAside = 1 },
		"unsettled": func(l *Ledger) { l.Unsettled = 1 },
		"markers":   func(l *Ledger) { l.Markers = 8 },
		"unnoticed": func(l *Ledger) { l.NotReady = 0 },
	})
}
