//go:build unix

package webhook

import (
	"cmp"
	"context"
	"slices"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// Ledger counts events, effects, kills and restarts in one run of the fault test. If the receiver answered an event
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
	return cmp.Or(l.Balance.Wrong(),
		ledger.None(l.Believed, "forged or old requests were answered with 2xx"),
		ledger.None(l.Rows-l.Expected, "more rows in the inbox than events (fewer if negative)"),
		ledger.None(l.GivenUp, "events had no 2xx for three days"))
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
func (r *run) audit(ctx context.Context) {
	l, effects := r.ledger, proof.Must(ledger.Effects(ctx, r.Activity.DB, "delivery"))
	l.Counts, l.Restarts = r.provider.Counts, r.Tally.Restarts
	l.Rows = r.Count(ctx, "select count(*) from semel_inbox")
	l.Balance = ledger.Weigh(effects, slices.Values(r.provider.sent), r.Count(ctx, "select count(*) from semel_inbox where state <> 'COMPLETED'"))
	applied := r.Count(ctx, "select count(distinct delivery) from naive_effects")
	l.NaiveDoubled = r.Count(ctx, "select count(*) from naive_effects") - applied
	l.NaiveLost = len(r.providerOfNaive.sent) - applied
}
