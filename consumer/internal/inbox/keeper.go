package inbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// keeper extends the leases of claims while their batches run. The worker of a batch cannot extend leases, because the
// worker is busy with a handler. Leases of rows that were claimed in advance are not extended, so another process may
// claim these rows when the leases end. No lease is extended beyond the deadline of its batch, so a handler that does
// not return loses its claim. If a lease ends while the store does not respond, the batch is cancelled, because another
// process may already run the messages of the batch.
type keeper struct {
	leases store.Leases
	lease  time.Duration
	// onError is called with the error of an extension.
	onError func(error)

	mutex  sync.Mutex
	claims map[int64]*keptClaim // by number of the row; guarded by mutex
}

func newKeeper(leases store.Leases, lease time.Duration, failed func(error)) *keeper {
	return &keeper{leases: leases, lease: lease, onError: failed, claims: map[int64]*keptClaim{}}
}

// keptClaim is a claim of a running batch.
type keptClaim struct {
	store.Claim
	row   *ClaimedRow
	until time.Time
	// lost cancels the batch of the claim.
	lost context.CancelCauseFunc
}

// Begin starts to extend the leases of claims, until a deadline. When a claim is lost, Begin's parameter lost is
// called.
func (k *keeper) Begin(rows []*ClaimedRow, until time.Time, lost context.CancelCauseFunc) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, h := range rows {
		k.claims[h.Number] = &keptClaim{h.Claim(), h, until, lost}
	}
}

// Move changes the deadline of claims, for example when their batch commits.
func (k *keeper) Move(claims []store.Claim, until time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, c := range claims {
		if kept := k.claims[c.Number]; kept != nil && kept.Token == c.Token {
			kept.until = until
		}
	}
}

// End stops extending the leases of claims.
func (k *keeper) End(claims []store.Claim) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, c := range claims {
		if kept := k.claims[c.Number]; kept != nil && kept.Token == c.Token {
			delete(k.claims, c.Number)
		}
	}
}

// forget stops extending the leases of rows, whatever the tokens of their claims are.
func (k *keeper) forget(rows []*ClaimedRow) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, h := range rows {
		if kept := k.claims[h.Number]; kept != nil && kept.row == h {
			delete(k.claims, h.Number)
		}
	}
}

// Work extends leases until base ends. Work extends a lease whenever a third of its duration has passed.
func (k *keeper) Work(base context.Context) {
	tick := time.NewTicker(k.lease / 3)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			k.extend(base, now)
		case <-base.Done():
			return
		}
	}
}

// extend extends the leases of all running claims.
func (k *keeper) extend(base context.Context, now time.Time) {
	k.ExtendNow(base, k.claimsToExtend(now))
}

// ExtendNow extends the leases of those claims for which Begin was called and End was not.
func (k *keeper) ExtendNow(base context.Context, claims []store.Claim) {
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(base, k.lease/3)
	defer cancel()
	asked := time.Now()
	lost, err := k.leases.Extend(ctx, claims, k.lease)
	if err != nil {
		k.onError(err)
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for i, c := range claims {
		kept := k.claims[c.Number]
		switch {
		case kept == nil || kept.Token != c.Token:
		case slices.Contains(lost, i):
			k.cancelBatch(kept)
		default:
			kept.row.ends = asked.Add(k.lease)
		}
	}
}

// claimsToExtend returns the claims whose leases must be extended. If the lease of a claim has ended, claimsToExtend
// cancels the batch of the claim.
func (k *keeper) claimsToExtend(now time.Time) (claims []store.Claim) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, c := range k.claims {
		switch {
		case c.row.ends.Before(now):
			k.cancelBatch(c)
		case c.until.After(now):
			claims = append(claims, c.Claim)
		}
	}
	return claims
}

// Earliest returns the time until which the leases of all given rows are certainly valid.
func (k *keeper) Earliest(rows []*ClaimedRow) time.Time {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	first := rows[0].ends
	for _, h := range rows {
		if h.ends.Before(first) {
			first = h.ends
		}
	}
	return first
}

// Left returns how long the lease of a row is certainly valid.
func (k *keeper) Left(h *ClaimedRow) time.Duration {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return time.Until(h.ends)
}

// Lasts records that the lease of a row is valid at least until the given time.
func (k *keeper) Lasts(h *ClaimedRow, until time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if until.After(h.ends) {
		h.ends = until
	}
}

// cancelBatch cancels the batch of a claim that another process has, or may have. The caller has locked the mutex.
func (k *keeper) cancelBatch(c *keptClaim) {
	delete(k.claims, c.Number)
	c.lost(store.ErrClaimLost)
}
