package commit

import (
	"cmp"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger counts messages, effects, and commits whose connection was cut in one run of the fault test.
type Ledger struct {
	Direction Direction `json:"lost_of_commit"`
	// Cuts is the number of commits at which the connection was cut. Waiting is the number of cuts while the standby
	// was frozen.
	Cuts    int `json:"commits_cut"`
	Waiting int `json:"of_them_while_the_standby_was_frozen"`
	proof.RivalsLedger
	// The minimum number of cuts that the fault test needs.
	least int
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(
		l.RivalsLedger.Fault(),
		ledger.AtLeast(l.least, l.Cuts, "commits were cut"),
		ledger.AtLeast(l.Cuts, l.Unknown, "cut commits were taken for unknown"),
		ledger.AtLeast(1, l.Waiting, "commits were cut while the standby was frozen"),
		ledger.AtLeast(1, l.First, "messages were applied by the first consumer"),
		ledger.AtLeast(1, l.Second, "messages were applied by the second consumer"),
	)
}
