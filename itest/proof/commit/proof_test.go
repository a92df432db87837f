package commit

import (
	"testing"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// The number of cut connections in this test. The command `make proof NAME=commit` makes 10,000 cuts.
const cuts = 100

func prove(t *testing.T, p Proof) Ledger {
	t.Helper()
	p.Cuts, p.Seed = cuts, 7
	l := proof.Prove(proof.InTest(t), p.Run)
	t.Logf("%+v", l)
	return l
}

func TestALostCommitNeitherLosesNorDoubles(t *testing.T) {
	for _, driver := range workload.Drivers() {
		t.Run(driver.Name, func(t *testing.T) {
			t.Parallel() // each subtest starts its own servers
			t.Run("trap_89_the_reply_to_COMMIT_is_lost_also_while_it_waits_for_a_standby", func(t *testing.T) {
				if err := prove(t, Proof{Driver: driver, Direction: Reply}).Fault(); err != nil {
					t.Error(err)
				}
			})
			t.Run("trap_90_the_request_to_COMMIT_is_lost", func(t *testing.T) {
				if err := prove(t, Proof{Driver: driver, Direction: Request}).Fault(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestTheProofFindsALookUpInPlaceOfAMark(t *testing.T) {
	t.Run("case_3_a_look_up_alone_decides_nothing", func(t *testing.T) {
		for _, driver := range workload.Drivers() {
			t.Run(driver.Name, func(t *testing.T) {
				t.Parallel()
				if l := prove(t, Proof{Driver: driver, Direction: Reply, LookUp: true}); l.Doubled+l.Lost == 0 {
					t.Errorf("the planted fault lost or doubled nothing, so the proof cannot detect it: %+v", l)
				}
			})
		}
	})
}

func TestALedgerIsAProofOnlyIfNothingIsWrong(t *testing.T) {
	good := Ledger{Cuts: 5, Waiting: 1, least: 5, RivalsLedger: proof.RivalsLedger{
		Balance: ledger.Balance{Expected: 9, Applied: 9}, Markers: 9, Unknown: 5, First: 4, Second: 5}}
	proof.Spoil(t, good, map[string]func(*Ledger){
		"lost":       func(l *Ledger) { l.Lost = 1 },
		"doubled":    func(l *Ledger) { l.Doubled = 1 },
		"set aside":  func(l *Ledger) { l.SetAside = 1 },
		"unsettled":  func(l *Ledger) { l.Unsettled = 1 },
		"markers":    func(l *Ledger) { l.Markers = 8 },
		"cuts":       func(l *Ledger) { l.Cuts = 4 },
		"known":      func(l *Ledger) { l.Unknown = 4 },
		"no waiting": func(l *Ledger) { l.Waiting = 0 },
		"alone":      func(l *Ledger) { l.Second = 0 },
	})
}
