//go:build unix

package charge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/store"
)

// patience is how long the proof waits for the remaining work after the last fault. The ledger reports work
// that is not done by then.
const patience = 3 * time.Minute

// settled waits until both groups have committed all offsets of their partitions and the inbox has no waiting
// rows.
func (r *run) settled(ctx context.Context) error {
	waiting := -1
	is, err := r.Patiently(ctx, patience, 300*time.Millisecond, func(ctx context.Context) (bool, error) {
		if behind, err := r.Kafka.TryBehind(ctx, naiveGroup, topic); err != nil || behind > 0 || !r.Watch.AtEnd(ctx) {
			return false, nil
		}
		err := r.pool.QueryRow(ctx, "select count(*) from semel_inbox where state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE')").Scan(&waiting)
		return waiting == 0, err
	})
	switch {
	case err == nil && is:
		r.Say("nothing waits any more but what is parked")
	case err == nil:
		r.Say("after %v %d payments still wait", patience, waiting)
	}
	return err
}

// decideAll decides all payments that wait for a person. A decided payment is called again and may end with
// an unknown outcome again, because its attempts are used up. decideAll then decides it a second time.
func (r *run) decideAll(ctx context.Context) error {
	r.ledger.decided = map[string]bool{}
	for range 10 {
		decided, err := r.decide(ctx)
		if err != nil || decided == 0 {
			return err
		}
		if err := r.settled(ctx); err != nil {
			return err
		}
	}
	return nil // the ledger reports payments that are still undecided
}

// decide acts as the person who decides. For each payment with an unknown outcome it looks into the
// provider's log and records whether the payment was charged.
func (r *run) decide(ctx context.Context) (decided int, err error) {
	charged := map[string]bool{}
	err = provider.Entries(r.log(), func(e provider.Entry) {
		if e.Kind == provider.Charged {
			charged[e.Reference] = true
		}
	})
	if err != nil {
		return 0, err
	}
	rows, err := r.store.Rows(ctx, store.RowFilter{Consumer: charges, States: []store.RowState{store.StateParked},
		Limit: 10_000, Bodies: true})
	if err != nil {
		return 0, err
	}
	for i := range rows {
		p, err := semel.JSON[provider.Payment](rows[i].Message)
		if err != nil {
			return 0, err
		}
		if !rows[i].UnknownOutcome() {
			// This payment was decided before. The provider rejected the repeated call temporarily, and
			// the attempts were used up, so it may be decided again. A payment in any other state is
			// stuck, and the ledger reports it.
			if r.ledger.decided[p.Reference] {
				if err := errors.Join(r.store.Requeue(ctx, store.Act{Verb: "retry", Who: "proof", Why: "refused for now"}, rows[i].Seen())...); err != nil {
					return decided, fmt.Errorf("retry row %d of %s: %w", rows[i].Number, p.Reference, err)
				}
				decided++
			}
			continue
		}
		found := admin.ResolvedNotDone
		if charged[p.Reference] {
			found = admin.ResolvedDone
		}
		if err := errors.Join(r.store.Resolve(ctx, found, store.Act{Verb: "resolve", Who: "proof", Why: "the provider's books"}, rows[i].Seen())...); err != nil {
			return decided, fmt.Errorf("resolve row %d of %s: %w", rows[i].Number, p.Reference, err)
		}
		r.ledger.decided[p.Reference] = true
		decided++
	}
	r.Say("a person decided what became of %d payments", decided)
	return decided, nil
}
