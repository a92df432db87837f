//go:build unix

package file

import (
	"cmp"
	"errors"

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

// FleetLedger is what came out of a Fleet.
type FleetLedger struct {
	// Readers each had Deliveries.
	Readers    int `json:"processes"`
	Deliveries int `json:"deliveries_in_each_file"`
	proof.Tally
	// FrozenSeconds is when the server ended the transaction of the frozen
	// process, which it was to end after IdleSeconds.
	FrozenSeconds proof.Seconds `json:"seconds_until_the_server_ended_the_frozen_transaction"`
	IdleSeconds   proof.Seconds `json:"seconds_after_which_it_was_to"`
	// least is how many kills must have met an open transaction.
	least int
}

// Fault implements proof.Ledger.
func (l FleetLedger) Fault() error {
	if !l.Frozen || l.FrozenSeconds < l.IdleSeconds-3 {
		return cmp.Or(l.Wrong(), errors.New("the frozen process went on, or its transaction ended by itself: no proof"))
	}
	return cmp.Or(l.Wrong(), ledger.AtLeast(l.least, l.Open, "kills met an open transaction"))
}
