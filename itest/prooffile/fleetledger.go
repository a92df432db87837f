//go:build unix

package prooffile

import (
	"context"
	"fmt"
	"io"

	"github.com/semel-go/semel/itest/ledger"
)

// FleetLedger is what came out of a Fleet.
type FleetLedger struct {
	// Readers each had Deliveries.
	Readers, Deliveries int
	// Expected are ids, Applied those in the effect log.
	Expected, Applied int
	// As in Ledger.
	Lost, Doubled, Stuck, Astray int
	// Guards are rows that only a transaction that is under way may have.
	Guards int
	// Open are kills that met an open transaction.
	Kills, Open, Restarts int
	// Again are processes that started while the server was away, said so and
	// ended, and were started again.
	Again int
	// FrozenSeconds is when the server ended the transaction of the frozen
	// process, which it was to end after IdleSeconds; Frozen says that the process still stood there at the end.
	FrozenSeconds, IdleSeconds float64
	Frozen                     bool
	Seconds                    float64
}

func (f *fleet) audit(ctx context.Context) error {
	e, err := ledger.ReadEffects(ctx, f.db.DB)
	if err != nil {
		return err
	}
	aside, err := f.members[0].Parked()
	if err != nil {
		return err
	}
	for _, m := range f.members[:victim] {
		left, err := m.Left("counter")
		if err != nil {
			return err
		}
		aside += left
	}
	absent := missing(e, f.Input.IDs)
	f.ledger.Applied = f.Input.IDs - absent
	f.ledger.Stuck = aside
	f.ledger.Lost = max(absent-aside, 0)
	f.ledger.Doubled = e.Doubled()
	f.ledger.Astray = e.Astray
	if err := f.db.DB.QueryRowContext(ctx, `select count(*) from semel_guard`).Scan(&f.ledger.Guards); err != nil {
		return err
	}
	f.ledger.Frozen, err = f.members[victim].process.Stopped()
	return err
}

// Fault says why the ledger is no proof; nil if it is one. At least `open`
// kills must have met an open transaction.
func (l FleetLedger) Fault(open int) error {
	switch {
	case l.Lost != 0 || l.Doubled != 0 || l.Stuck != 0 || l.Applied != l.Expected:
		return fmt.Errorf("lost %d, doubled %d, stuck %d", l.Lost, l.Doubled, l.Stuck)
	case l.Astray != 0:
		return fmt.Errorf("%d counters are not what the effect log says", l.Astray)
	case l.Guards != 0:
		return fmt.Errorf("%d guards are left of transactions that are over", l.Guards)
	case l.Open < open:
		return fmt.Errorf("only %d kills met an open transaction, not %d: no proof", l.Open, open)
	case !l.Frozen || l.FrozenSeconds < l.IdleSeconds-3:
		return fmt.Errorf("the frozen process went on, or its transaction ended by itself: no proof")
	}
	return nil
}

// Write prints the ledger for people.
func (l FleetLedger) Write(w io.Writer) error {
	return ledger.WriteTable(w, []ledger.Line{
		{"processes, each with a file", l.Readers},
		{"deliveries in each file", l.Deliveries},
		{"expected", l.Expected},
		{"applied", l.Applied},
		{"lost", l.Lost},
		{"doubled", l.Doubled},
		{"stuck", l.Stuck},
		{"counters unlike the log", l.Astray},
		{"guards left", l.Guards},
		{"kills", l.Kills},
		{"kills that hit an open transaction", l.Open},
		{"restarts of the server", l.Restarts},
		{"starts while the server was away", l.Again},
		{"seconds until the server ended the frozen transaction", fmt.Sprintf("%.1f", l.FrozenSeconds)},
		{"the frozen process stands still", l.Frozen},
		{"seconds", fmt.Sprintf("%.1f", l.Seconds)},
	})
}
