//go:build unix

package prooffile

import (
	"fmt"
	"io"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/webhooks"
)

// missing are how many ids have no effect.
func missing(e ledger.Effects, ids int) int {
	missing := 0
	for i := range ids {
		if !e.IDs[webhooks.ID(i)] {
			missing++
		}
	}
	return missing
}

// Fault says why the ledger is no proof; nil if it is one. At least `open`
// kills must have met an open transaction.
func (l Ledger) Fault(open int) error {
	switch {
	case l.Lost != 0 || l.Doubled != 0 || l.Stuck != 0 || l.Applied != l.Expected:
		return fmt.Errorf("lost %d, doubled %d, stuck %d", l.Lost, l.Doubled, l.Stuck)
	case l.Astray != 0:
		return fmt.Errorf("%d counters are not what the effect log says", l.Astray)
	case l.Open < open:
		return fmt.Errorf("only %d kills met an open transaction, not %d: no proof", l.Open, open)
	}
	return nil
}

// Write prints the ledger for people.
func (l Ledger) Write(w io.Writer) error {
	return ledger.WriteTable(w, []ledger.Line{
		{"deliveries in the file", l.Deliveries},
		{"expected", l.Expected},
		{"applied", l.Applied},
		{"lost", l.Lost},
		{"doubled", l.Doubled},
		{"stuck", l.Stuck},
		{"duplicates absorbed", l.Absorbed},
		{"counters unlike the log", l.Astray},
		{"kills", l.Kills},
		{"kills that hit an open transaction", l.Open},
		{"seconds", fmt.Sprintf("%.1f", l.Seconds)},
	})
}
