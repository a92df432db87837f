//go:build unix

package file

import (
	"cmp"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger has the counts of one run of the fault test: deliveries, kills and effects.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	proof.Tally
	// Absorbed is the number of duplicates in the file. Deliveries that are repeated because of a restart do
	// not count.
	Absorbed int `json:"duplicates_absorbed"`
	// The minimum number of kills during an open transaction.
	least int
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(l.least, l.Open, "kills met an open transaction"))
}
