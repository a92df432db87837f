//go:build unix

package file

import (
	"cmp"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger has the counts of a run of the proof: deliveries, kills and effects.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	proof.Tally
	// Absorbed is the number of deliveries in the file that had no effect because their
	// message had taken effect. Deliveries that restarts repeated are not counted.
	Absorbed int `json:"duplicates_absorbed"`
	// least is the minimum number of kills with an open transaction.
	least int
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(l.least, l.Open, "kills met an open transaction"))
}
