//go:build unix

package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger counts events, effects, kills and restarts in a run of the proof. If the receiver answered an event
// with 2xx, the event must have an effect.
type Ledger struct {
	ledger.Balance
	Counts
	// Rows is the number of inbox rows. Each event must have one row, and there must be no other rows.
	Rows  int            `json:"rows_in_the_inbox"`
	Kills int            `json:"kills"`
	At    map[string]int `json:"kills_at"`
	// Ends is the number of ends by SIGTERM. Restarts is the number of restarts of PostgreSQL.
	Ends     int `json:"ends_by_sigterm"`
	Restarts int `json:"postgres_restarts"`
	// NaiveLost and NaiveDoubled count the lost and doubled effects of the naive receiver.
	NaiveLost    int           `json:"naive_lost"`
	NaiveDoubled int           `json:"naive_doubled"`
	Seconds      proof.Seconds `json:"seconds"`

	least Proof
}

// Wrong implements proof.Ledger.
func (l Ledger) Wrong() error {
	switch {
	case l.Balance.Wrong() != nil:
		return l.Balance.Wrong()
	case l.Believed != 0:
		return fmt.Errorf("%d forged or old requests were answered with 2xx", l.Believed)
	case l.Rows != l.Expected:
		return fmt.Errorf("the inbox has %d rows for %d events", l.Rows, l.Expected)
	case l.GivenUp != 0:
		return fmt.Errorf("%d events had no 2xx for three days", l.GivenUp)
	}
	return nil
}

// Fault implements proof.Ledger.
func (l Ledger) Fault() error {
	err := cmp.Or(l.Wrong(),
		ledger.AtLeast(l.least.Events, l.Expected, "events"),
		ledger.AtLeast(l.least.Kills+l.least.Rounds*len(points), l.Kills, "kills"),
		ledger.AtLeast(l.least.Ends, l.Ends, "ends by SIGTERM"),
		ledger.AtLeast(l.least.Restarts, l.Restarts, "restarts of PostgreSQL"),
		ledger.AtLeast(1, l.Refused, "forged or old requests"),
		ledger.AtLeast(1, l.Again, "events sent again after a 2xx"),
		ledger.AtLeast(1, l.Unanswered, "attempts without an answer"),
		ledger.AtLeast(1, l.NaiveLost, "events that the naive receiver lost"),
		ledger.AtLeast(1, l.NaiveDoubled, "effects that the naive receiver doubled"))
	for _, p := range points {
		err = cmp.Or(err, ledger.AtLeast(l.least.Rounds, l.At[p.name], "kills: "+p.name))
	}
	return err
}

// audit compares the effects with the events that were answered with 2xx.
func (r *run) audit(ctx context.Context) error {
	effects, err := ledger.Effects(ctx, r.Activity.DB, "delivery")
	if err != nil {
		return err
	}
	l := r.ledger
	l.Counts, l.Restarts = r.provider.Counts, r.tally.Restarts
	stuck := 0
	if err := r.Activity.DB.QueryRowContext(ctx, `select count(*), count(*) filter (where state <> 'COMPLETED') from semel_inbox`).Scan(&l.Rows, &stuck); err != nil {
		return err
	}
	l.Balance = ledger.Weigh(effects, slices.Values(r.provider.sent), stuck)
	query := `select count(distinct delivery), count(*) - count(distinct delivery) from naive_effects`
	var applied int
	if err := r.Activity.DB.QueryRowContext(ctx, query).Scan(&applied, &l.NaiveDoubled); err != nil {
		return err
	}
	l.NaiveLost = len(r.providerOfNaive.sent) - applied
	return nil
}
