package inbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// keeper extends the leases of claims whose flight is under way: its pilot is inside
// a handler and cannot. What is not begun is not extended: it was fetched ahead, and
// another worker may have it when its lease has ended. Nothing is extended beyond
// the deadline of its flight, so that a handler that sticks loses its claim. A flight
// whose lease is over as far as is known, because the store does not answer, is
// cancelled: another may run its messages already.
type keeper struct {
	leases store.Leases
	lease  time.Duration
	// failed is told of an extension that could not be made.
	failed func(error)

	mutex sync.Mutex
	kept  map[int64]*keptClaim // by number of the row; guarded by mutex
}

func newKeeper(leases store.Leases, lease time.Duration, failed func(error)) *keeper {
	return &keeper{leases: leases, lease: lease, failed: failed, kept: map[int64]*keptClaim{}}
}

// keptClaim is a claim of a flight under way.
type keptClaim struct {
	store.Claim
	row   *ClaimedRow
	until time.Time
	// lost cancels its flight.
	lost context.CancelCauseFunc
}

// Begin keeps claims until a deadline; lost is called when one of them is.
func (k *keeper) Begin(rows []*ClaimedRow, until time.Time, lost context.CancelCauseFunc) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, h := range rows {
		k.kept[h.Number] = &keptClaim{h.Claim(), h, until, lost}
	}
}

// Move moves the deadline: of a flight that commits, say.
func (k *keeper) Move(claims []store.Claim, until time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, c := range claims {
		if kept := k.kept[c.Number]; kept != nil && kept.Token == c.Token {
			kept.until = until
		}
	}
}

// End keeps claims no longer.
func (k *keeper) End(claims []store.Claim) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, c := range claims {
		if kept := k.kept[c.Number]; kept != nil && kept.Token == c.Token {
			delete(k.kept, c.Number)
		}
	}
}

// forget keeps rows no longer, whatever their token.
func (k *keeper) forget(rows []*ClaimedRow) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, h := range rows {
		if kept := k.kept[h.Number]; kept != nil && kept.row == h {
			delete(k.kept, h.Number)
		}
	}
}

// Work extends three times a lease until base ends.
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

// extend extends once what is kept.
func (k *keeper) extend(base context.Context, now time.Time) { k.ExtendNow(base, k.due(now)) }

// ExtendNow extends these of what is kept.
func (k *keeper) ExtendNow(base context.Context, claims []store.Claim) {
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(base, k.lease/3)
	defer cancel()
	asked := time.Now()
	lost, err := k.leases.Extend(ctx, claims, k.lease)
	if err != nil {
		k.failed(err)
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for i, c := range claims {
		kept := k.kept[c.Number]
		switch {
		case kept == nil || kept.Token != c.Token:
		case slices.Contains(lost, i):
			k.lose(kept)
		default:
			kept.row.ends = asked.Add(k.lease)
		}
	}
}

// due are the claims to be extended. Those whose lease is over are lost.
func (k *keeper) due(now time.Time) (claims []store.Claim) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, c := range k.kept {
		switch {
		case c.row.ends.Before(now):
			k.lose(c)
		case c.until.After(now):
			claims = append(claims, c.Claim)
		}
	}
	return claims
}

// Earliest is when the first lease of these rows surely lasts no longer.
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

// Left is how long the lease of a row surely lasts.
func (k *keeper) Left(h *ClaimedRow) time.Duration {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return time.Until(h.ends)
}

// Lasts notes that the lease of a row lasts until a moment at least.
func (k *keeper) Lasts(h *ClaimedRow, until time.Time) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if until.After(h.ends) {
		h.ends = until
	}
}

// lose cancels the flight of a claim that is another's, or may be; guarded by mutex.
func (k *keeper) lose(c *keptClaim) {
	delete(k.kept, c.Number)
	c.lost(store.ErrClaimLost)
}
