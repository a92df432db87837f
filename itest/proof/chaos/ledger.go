//go:build unix

package chaos

import (
	"cmp"
	"context"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger counts messages, effects and faults in one run of a fault test. The numbers of lost, doubled and stuck messages
// come only from the database and the broker.
type Ledger struct {
	// Messages is the number of published messages, each with its own identity. Copies is the number of further records.
	// Each message must have one effect for each consumer.
	Messages int `json:"messages"`
	Copies   int `json:"copies_by_producers"`
	proof.Tally
	proof.Offsets
	proof.Accord
	// Faults is the number of faults that had their effect, by kind.
	Faults  map[string]int `json:"faults,omitempty"`
	Planted string         `json:"planted,omitempty"`
	planned []string
}

// audit computes the ledger from the database and the broker.
func (r *run) audit(ctx context.Context) {
	l := &r.ledger
	l.Offsets = r.Watch.Audit(ctx)
	stuck := 0
	if !r.plain() {
		l.Offsets.Add(r.received.Audit(ctx))
		l.Accord.Hear(ctx, r.Activity.DB)
		stuck = r.Count(ctx, unfinished)
	}
	l.Tally.Audit(ctx, r.Activity.DB, r.effects(), stuck+int(l.Behind), !r.plain())
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	return cmp.Or(l.Tally.Wrong(), l.Offsets.Wrong(), l.Accord.Wrong())
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	planned := map[string]int{}
	for _, name := range l.planned {
		planned[name]++
	}
	err := cmp.Or(l.Wrong(), ledger.AtLeast(1, l.Messages, "messages"), ledger.AtLeast(2*l.Messages, l.Expected, "expected effects"))
	for name, n := range planned {
		err = cmp.Or(err, ledger.AtLeast(n, l.Faults[name], "faults of the kind "+name))
	}
	return err
}
