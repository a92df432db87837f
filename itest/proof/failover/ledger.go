package failover

import (
	"cmp"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger counts messages and effects in one run of the fault test, and records the length of the outage.
type Ledger struct {
	proof.RivalsLedger
	// Before is the number of messages that were committed when the primary was killed.
	Before int `json:"in_commits_when_the_primary_was_killed"`
	// Outage is the time from the kill to the first commit after the kill.
	Outage int64 `json:"milliseconds_from_the_kill_to_the_first_commit"`
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	return cmp.Or(
		l.RivalsLedger.Fault(),
		ledger.AtLeast(1, l.NotReady+l.Unknown, "signs that the consumers noticed the failover"),
	)
}
