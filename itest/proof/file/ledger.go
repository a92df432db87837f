//go:build unix

package file

import (
	"cmp"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger is what came out.
type Ledger struct {
	Deliveries int `json:"deliveries"`
	proof.Tally
	// Absorbed are the deliveries of the file that had no effect because
	// their message had taken effect; what the restarts delivered again comes
	// on top and is not counted.
	Absorbed int `json:"duplicates_absorbed"`
	// least is how many kills must have met an open transaction.
	least int
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(l.Wrong(), ledger.AtLeast(l.least, l.Open, "kills met an open transaction"))
}
