// Package inbox claims rows of a store's inbox for one process of a consumer. Package inbox extends the leases of the
// rows while handlers run, and releases claims that are not used.
package inbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Inbox claims due rows of its consumer's inbox when the machine asks for rows, and releases claims that the machine
// does not use. When the handler of a row has run, the commit of its batch ends the claim.
type Inbox struct {
	Options
	Keeper *keeper

	wake  chan struct{}
	mutex sync.Mutex
	// unsure contains the tokens of Claim calls that returned an error and may have claimed rows. Only the
	// goroutine that claims writes unsure; guarded by mutex.
	unsure []store.Token
	order  *machine.ClaimRows // the machine's next request; guarded by mutex
	// claims contains the claims that this process probably has; guarded by mutex.
	claims map[int64]*ClaimedRow
	// pendingReleases contains claims that will be released; guarded by mutex.
	pendingReleases []*ClaimedRow
}

// Options are the settings of a consumer that its inbox uses.
type Options struct {
	guard.Guard
	Leases store.Leases
	Rows   store.Inbox
	Lease  time.Duration // duration of a claim
	Rules  *delivery.Rules
	// Refuse returns the reason why a claimed row never runs, or nil if the row may run.
	Refuse func(*store.StoredRow) *machine.Refusal
	// Notify passes events to the observers.
	Notify  func(semel.Event)
	Control *control.Control
	// Sweep maintains the queues of the inbox (by key or by lane). If the store has no queues, Sweep is nil.
	Sweep *upkeep.LaneSweep
	// Only contains the numbers of the rows that may be claimed. If Only is empty, all rows may be claimed.
	Only []int64
	// Since is the start of the run. The machine counts time from Since.
	Since time.Time
}

// New returns the inbox of one run.
func New(o Options) *Inbox {
	return &Inbox{Options: o, wake: make(chan struct{}, 1), claims: map[int64]*ClaimedRow{},
		Keeper: newKeeper(o.Leases, o.Lease, func(err error) {
			o.Logger.Warn("the leases of claims were not extended", "consumer", o.Consumer, "error", err)
		})}
}

// Ask passes on the machine's request to claim rows. The machine makes one such request at a time.
func (b *Inbox) Ask(a machine.ClaimRows) {
	b.mutex.Lock()
	b.order = &a
	b.mutex.Unlock()
	b.wakeUp()
}

// Free passes on the machine's request to release claims.
func (b *Inbox) Free(a machine.Unclaim) {
	b.mutex.Lock()
	for _, it := range a.Items {
		h := RowOf(it.Handle.(*delivery.Delivery))
		if it == a.Halted {
			h.halts = a.Err
		}
		if b.claims[h.Number] == h {
			b.pendingReleases = append(b.pendingReleases, h)
		}
	}
	b.mutex.Unlock()
	b.wakeUp()
}

func (b *Inbox) wakeUp() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Forget removes claims that have ended or were lost from the list of this process's claims.
func (b *Inbox) Forget(all ...*ClaimedRow) {
	b.Keeper.forget(all)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, h := range all {
		if b.claims[h.Number] == h {
			delete(b.claims, h.Number)
		}
	}
}

// Work carries out the machine's requests until base ends.
func (b *Inbox) Work(base context.Context, events chan<- machine.Event) {
	var stranded []*ClaimedRow // claims that could not be released yet
	for {
		select {
		case <-b.wake:
		case <-base.Done():
			return
		}
		b.mutex.Lock()
		freed, order := b.pendingReleases, b.order
		b.pendingReleases, b.order = nil, nil
		b.mutex.Unlock()
		freed = append(stranded, freed...)
		stranded = nil
		if err := b.release(base, freed); err != nil {
			b.Logger.Warn("claims were not given back: that is tried again, or their leases end", "consumer", b.Consumer, "claims", len(freed), "error", err)
			stranded = b.dropExpired(freed)
		}
		if order == nil {
			continue
		}
		b.Sweep.Work(base)
		select {
		case events <- b.claimAdmitted(base, *order):
		case <-base.Done():
			return
		}
	}
}

// dropExpired returns those claims that must still be released, because their leases have not ended yet. Claims whose
// leases have ended are dropped.
func (b *Inbox) dropExpired(all []*ClaimedRow) (left []*ClaimedRow) {
	now := time.Now()
	for _, h := range all {
		if b.Keeper.Earliest([]*ClaimedRow{h}).After(now) {
			left = append(left, h)
		} else {
			b.Forget(h)
		}
	}
	return left
}

// release releases claims. If the store fails, the claims are released by a later call, or by Close.
func (b *Inbox) release(base context.Context, all []*ClaimedRow) error {
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(base, b.Lease/2)
	defer cancel()
	endings := make([]store.ClaimEnding, len(all))
	for i, h := range all {
		endings[i] = h.releaseEnding()
	}
	slices.SortFunc(endings, func(x, y store.ClaimEnding) int { return cmp.Compare(x.Number, y.Number) })
	_, err := b.Leases.End(ctx, endings) // a claim that is lost needs no release
	if err == nil {
		b.Forget(all...)
	} else if base.Err() != nil {
		return nil
	}
	return err
}

// claimAdmitted claims as many rows as pauses and limits of operators permit.
func (b *Inbox) claimAdmitted(base context.Context, order machine.ClaimRows) machine.Claimed {
	n, later := b.Control.AdmitClaim(order.Messages)
	if n == 0 {
		return machine.Claimed{Later: later}
	}
	order.Messages = n
	claimed := b.claim(base, order)
	b.Control.Claimed(len(claimed.Items))
	return claimed
}

// claim claims due rows. If earlier calls of Claim failed but may have claimed rows, claim returns these rows
// first.
func (b *Inbox) claim(base context.Context, order machine.ClaimRows) machine.Claimed {
	ctx, cancel := context.WithTimeout(base, b.Lease/2)
	defer cancel()
	began := time.Now()
	for len(b.unsure) > 0 {
		claimed, err := b.Leases.Held(ctx, b.Consumer, b.unsure[0])
		if err != nil {
			return machine.Claimed{Failed: true, Err: err}
		}
		b.mutex.Lock()
		b.unsure = b.unsure[1:]
		b.mutex.Unlock()
		if len(claimed) > 0 {
			return machine.Claimed{Items: b.items(claimed, began)}
		}
	}
	token := store.NewToken()
	claimed, err := b.Leases.Claim(ctx, store.ClaimOptions{Consumer: b.Consumer, Token: token, Numbers: b.Only, Most: order.Messages, Bytes: order.Bytes, Lease: b.Lease, Ahead: b.noteAhead})
	if err != nil {
		b.mutex.Lock()
		b.unsure = append(b.unsure, token)
		b.mutex.Unlock()
		return machine.Claimed{Failed: true, Err: err}
	}
	return machine.Claimed{Items: b.items(claimed, began)}
}

// partClock is the value of Reason in the events of noteAhead.
const partClock = "clock"

// noteAhead reports rows that were written while the store's clock was ahead. Rows that were written ahead of the clock
// may belong to other consumers.
func (b *Inbox) noteAhead(rows int, by time.Duration) {
	b.Notify(semel.Event{Kind: semel.EventNotReady, Reason: partClock, Messages: rows, Wait: by,
		Err: fmt.Errorf("the store's clock was set back: rows were dated in the future, by %v at most", by.Round(time.Second))})
	b.Notify(semel.Event{Kind: semel.EventReady, Reason: partClock})
	b.Logger.Warn("the store's clock was set back: rows were dated in the future; their delays were shortened",
		"consumer", b.Consumer, "rows", rows, "ahead", by.Round(time.Second).String())
}

// items returns claimed rows as items for the machine. The parameter began is the time before the request to the store,
// so that a lease ends in this process no later than in the store.
func (b *Inbox) items(claimed []store.Claimed, began time.Time) []*machine.Item {
	all := make([]*machine.Item, len(claimed))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for i, c := range claimed {
		h := &ClaimedRow{Claimed: c, tokens: []store.Token{c.Token}, ends: began.Add(c.Left)}
		b.claims[c.Number] = h
		all[i] = b.item(h, began.Add(c.Left*2/3).Sub(b.Since))
	}
	return all
}

// item returns a claimed row as an item for the machine.
func (b *Inbox) item(h *ClaimedRow, until machine.Time) *machine.Item {
	it := &delivery.Stored(b.Rules, &h.Row, b.Refuse(&h.Row), h).Item
	it.Claim = &machine.Claim{Attempts: h.Row.Attempts, Suspect: h.Suspect, Blocked: h.Blocked, Until: until}
	return it
}

// Close releases all claims that have not ended, so that other processes need not wait until the leases end.
func (b *Inbox) Close(ctx context.Context) error {
	b.mutex.Lock()
	all := make([]*ClaimedRow, 0, len(b.claims))
	for _, h := range b.claims {
		all = append(all, h)
	}
	unsure := slices.Clone(b.unsure)
	b.mutex.Unlock()
	for _, token := range unsure { // calls that failed may have claimed rows
		if claimed, err := b.Leases.Held(ctx, b.Consumer, token); err == nil {
			for _, c := range claimed {
				all = append(all, &ClaimedRow{Claimed: c, tokens: []store.Token{token}})
			}
		}
	}
	if err := cmp.Or(b.release(ctx, all), ctx.Err()); err != nil {
		return fmt.Errorf("semel: consumer %s: %d claims were not given back and wait for the end of their leases: %w", b.Consumer, len(all), err)
	}
	return nil
}
