//go:build unix

package charge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/store"
)

// The time for which the fault test waits for the remaining work after the last fault. The ledger reports work that is
// not done in time.
const patience = 3 * time.Minute

// waitSettled waits until the groups of the consumer and of the naive consumer have committed all offsets, and
// the inbox has no waiting rows.
func (r *run) waitSettled(ctx context.Context) {
	waiting := -1
	is := r.Patiently(ctx, patience, 300*time.Millisecond, func(ctx context.Context) bool {
		if behind, err := r.Kafka.TryBehind(ctx, naiveGroup, topic); err != nil || behind > 0 || !r.Watch.AtEnd(ctx) {
			return false
		}
		waiting = r.Count(ctx, "select count(*) from semel_inbox where state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE')")
		return waiting == 0
	})
	if is {
		r.Say("nothing waits any more but what is parked")
	} else {
		r.Say("after %v %d payments still wait", patience, waiting)
	}
}

// decideAll decides all payments that wait for a person. After a decision, the call for the payment may be repeated,
// and may end with an unknown outcome again, because its attempts are used up. The ledger reports payments that are
// left.
func (r *run) decideAll(ctx context.Context) {
	r.ledger.decided = map[string]bool{}
	for range 10 {
		if r.decide(ctx) == 0 {
			return
		}
		r.waitSettled(ctx)
	}
}

// decide acts like a person who decides: for each payment with an unknown outcome, decide records whether the payment
// was charged, according to the provider's log.
func (r *run) decide(ctx context.Context) (decided int) {
	charged := map[string]bool{}
	proof.Check(provider.Entries(r.log(), func(e provider.Entry) {
		if e.Kind == provider.Charged {
			charged[e.Reference] = true
		}
	}))
	rows := proof.Must(r.store.Rows(ctx, store.RowFilter{Consumer: charges, States: []store.RowState{store.StateParked}, Limit: 10_000, Bodies: true}))
	for i := range rows {
		p := proof.Must(semel.JSON[provider.Payment](rows[i].Message))
		act, errs := store.Act{Verb: "resolve", Who: "proof", Why: "the provider's books"}, []error(nil)
		switch {
		case rows[i].UnknownOutcome() && charged[p.Reference]:
			errs = r.store.Resolve(ctx, admin.ResolvedDone, act, rows[i].Seen())
		case rows[i].UnknownOutcome():
			errs = r.store.Resolve(ctx, admin.ResolvedNotDone, act, rows[i].Seen())
		case r.ledger.decided[p.Reference]:
			// The service rejected the repeated call until all attempts were used up.
			errs = r.store.Requeue(ctx, store.Act{Verb: "retry", Who: "proof", Why: "refused for now"}, rows[i].Seen())
		default:
			continue // the payment is stuck, and the ledger reports it
		}
		proof.During(fmt.Sprintf("row %d of %s", rows[i].Number, p.Reference), func() { proof.Check(errors.Join(errs...)) })
		r.ledger.decided[p.Reference] = true
		decided++
	}
	r.Say("a person decided what became of %d payments", decided)
	return decided
}
