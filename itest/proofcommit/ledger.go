package proofcommit

import (
	"context"
	"fmt"
	"io"

	"github.com/semel-go/semel/itest/ledger"
)

// Ledger is what came out.
type Ledger struct {
	Driver    string
	Direction Direction
	// Expected are messages, Applied those in the effect log.
	Expected, Applied int
	// Lost messages have no effect; Doubled are effects beyond the first of a
	// message.
	Lost, Doubled int
	// Markers that say applied.
	Markers int
	// SetAside are inbox rows; Unsettled are deliveries that the two sources
	// have not been told of.
	SetAside, Unsettled int
	// Duplicates are deliveries that found their message applied.
	Duplicates int
	// Cuts are the commits that were cut, Waiting those of them that met a
	// frozen standby, Unknown the batches of which the consumers said that
	// their commit was unknown.
	Cuts, Waiting, Unknown int
	// First and Second are the effects of the two consumers.
	First, Second int
	Seconds       float64
}

func (r *run) audit(ctx context.Context, l *Ledger) error {
	var rows int
	err := r.db.QueryRowContext(ctx, `
		select count(*), count(distinct id), count(*) filter (where worker = 'first'), count(*) filter (where worker = 'second'),
			(select count(*) from semel_markers where outcome = 1), (select count(*) from semel_inbox)
		from effects`).Scan(&rows, &l.Applied, &l.First, &l.Second, &l.Markers, &l.SetAside)
	l.Lost, l.Doubled = l.Expected-l.Applied, rows-l.Applied
	return err
}

// Fault says why the ledger is no proof of this many cuts; nil if it is one.
func (l Ledger) Fault(cuts int) error {
	switch {
	case l.Lost != 0 || l.Doubled != 0:
		return fmt.Errorf("lost %d, doubled %d", l.Lost, l.Doubled)
	case l.SetAside != 0 || l.Unsettled != 0:
		return fmt.Errorf("set aside %d, not settled %d", l.SetAside, l.Unsettled)
	case l.Markers != l.Applied:
		return fmt.Errorf("%d markers say applied, %d messages are", l.Markers, l.Applied)
	case l.Cuts != cuts:
		return fmt.Errorf("%d commits were cut, not %d: no proof", l.Cuts, cuts)
	case l.Unknown < l.Cuts:
		return fmt.Errorf("of %d cut commits only %d were taken for unknown", l.Cuts, l.Unknown)
	case l.Waiting == 0:
		return fmt.Errorf("no commit was cut while the standby was frozen: no proof")
	case l.First == 0 || l.Second == 0:
		return fmt.Errorf("one consumer applied everything: no competition, no proof")
	}
	return nil
}

// Write prints the ledger for people.
func (l Ledger) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s of COMMIT lost\n", l.Driver, l.Direction)
	return ledger.WriteTable(w, []ledger.Line{
		{"commits cut", l.Cuts},
		{"of them while the standby was frozen", l.Waiting},
		{"batches taken for unknown", l.Unknown},
		{"expected", l.Expected},
		{"applied", l.Applied},
		{"lost", l.Lost},
		{"doubled", l.Doubled},
		{"set aside", l.SetAside},
		{"not settled", l.Unsettled},
		{"duplicates absorbed", l.Duplicates},
		{"applied by the first consumer", l.First},
		{"applied by the second consumer", l.Second},
		{"seconds", fmt.Sprintf("%.1f", l.Seconds)},
	})
}
