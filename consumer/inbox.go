package consumer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// inbox claims what is due in its consumer's inbox when the machine asks for it,
// and gives back what the machine does not want. A claim's end is no affair of
// its: that is in the flight's own transaction.
type inbox struct {
	config *settings
	leases store.Leases
	rows   store.Inbox
	keeper *keeper
	// notify passes events to the observers; see noteAhead.
	notify func(semel.Event)
	// only are the rows to be worked on; empty for all.
	only    []int64
	control *control.Control
	// since is the machine's zero.
	since time.Time

	// sweep is nil if the store keeps no lines.
	sweep *upkeep.LaneSweep

	wake  chan struct{}
	mutex sync.Mutex
	// unsure are tokens of calls whose answer was lost; written by the goroutine that
	// claims, guarded by mutex.
	unsure []store.Token
	order  *machine.ClaimRows // to be carried out; guarded by mutex
	// held are the claims that this process has, as far as it knows; guarded by mutex.
	held map[int64]*heldRow
	// freed are claims to be given back; guarded by mutex.
	freed []*heldRow
}

// heldRow is the handle of a claimed row.
type heldRow struct {
	store.Claimed
	// tokens are all that this process wrote into the row, the present one last; of
	// the flight that has it.
	tokens []store.Token
	// retaking is the token of a retake whose answer was lost; 0: none.
	retaking store.Token
	// started: its start is written down; the process has lived since.
	started bool
	// calls is what is known of those that were made under the claim.
	calls calls.Claim
	// ends is until when the lease surely lasts; of the keeper.
	ends time.Time
	// stepped are the steps that are done with the step that ran last; nil if none ran.
	stepped []store.StepDone
	// halts is why its message halted the consumer, nil if it did not.
	halts error
}

// heldBy returns the claimed row of a delivery, nil for a delivery of the broker.
func heldBy(p *delivery.Delivery) *heldRow {
	h, _ := p.Handle.(*heldRow)
	return h
}

// claim is the row's claim as it stands.
func (h *heldRow) claim() store.Claim {
	return store.Claim{Number: h.Number, Token: h.tokens[len(h.tokens)-1]}
}

func newInbox(c *settings, leases store.Leases, rows store.Inbox) *inbox {
	return &inbox{config: c, leases: leases, rows: rows, wake: make(chan struct{}, 1), held: map[int64]*heldRow{},
		keeper: newKeeper(leases, c.Inbox.Lease, func(err error) {
			c.Logger.Warn("the leases of claims were not extended", "consumer", c.Name, "error", err)
		})}
}

// ask has the inbox claim; the machine asks once at a time.
func (b *inbox) ask(a machine.ClaimRows) {
	b.mutex.Lock()
	b.order = &a
	b.mutex.Unlock()
	b.rouse()
}

// free has claims given back.
func (b *inbox) free(a machine.Unclaim) {
	b.mutex.Lock()
	for _, it := range a.Items {
		h := heldBy(it.Handle.(*delivery.Delivery))
		if it == a.Halted {
			h.halts = a.Err
		}
		if b.held[h.Number] == h {
			b.freed = append(b.freed, h)
		}
	}
	b.mutex.Unlock()
	b.rouse()
}

func (b *inbox) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// forget ends what is known of claims that have ended, or are another's.
func (b *inbox) forget(all ...*heldRow) {
	b.keeper.forget(all)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, h := range all {
		if b.held[h.Number] == h {
			delete(b.held, h.Number)
		}
	}
}

func (b *inbox) work(base context.Context, events chan<- machine.Event) {
	var stranded []*heldRow // which could not be given back
	for {
		select {
		case <-b.wake:
		case <-base.Done():
			return
		}
		b.mutex.Lock()
		freed, order := b.freed, b.order
		b.freed, b.order = nil, nil
		b.mutex.Unlock()
		freed = append(stranded, freed...)
		stranded = nil
		if err := b.release(base, freed); err != nil {
			b.config.Logger.Warn("claims were not given back: that is tried again, or their leases end", "consumer", b.config.Name, "claims", len(freed), "error", err)
			stranded = b.unreleased(freed)
		}
		if order == nil {
			continue
		}
		b.sweep.Work(base)
		select {
		case events <- b.claimAdmitted(base, *order):
		case <-base.Done():
			return
		}
	}
}

// unreleased are those of claims that could not be given back whose leases go on; the
// others nobody has to give back.
func (b *inbox) unreleased(all []*heldRow) (left []*heldRow) {
	now := time.Now()
	for _, h := range all {
		if b.keeper.earliest([]*heldRow{h}).After(now) {
			left = append(left, h)
		} else {
			b.forget(h)
		}
	}
	return left
}

// release gives claims back. What could not be, the next call does, or close.
func (b *inbox) release(base context.Context, all []*heldRow) error {
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(base, b.config.Inbox.Lease/2)
	defer cancel()
	endings := make([]store.ClaimEnding, len(all))
	for i, h := range all {
		endings[i] = h.givenBack()
	}
	slices.SortFunc(endings, func(x, y store.ClaimEnding) int { return cmp.Compare(x.Number, y.Number) })
	_, err := b.leases.End(ctx, endings) // one that is lost needs no release
	if err == nil {
		b.forget(all...)
	} else if base.Err() != nil {
		return nil
	}
	return err
}

// givenBack is how the claim of a message ends that did not end. One that halts the
// consumer had its attempt, and is due again: the next start tries it.
func (h *heldRow) givenBack() store.ClaimEnding {
	if h.halts != nil {
		return store.ClaimEnding{Claim: h.claim(), Event: store.RowFailed, Ran: true, Error: errorText(h.halts), Call: h.calls.Outcome()}
	}
	return store.ClaimEnding{Claim: h.claim(), Event: store.RowReleased, Began: h.started, Call: h.calls.Released()}
}

// claimAdmitted claims as much as operators let it.
func (b *inbox) claimAdmitted(base context.Context, order machine.ClaimRows) machine.Claimed {
	n, later := b.control.AdmitClaim(order.Messages)
	if n == 0 {
		return machine.Claimed{Later: later}
	}
	order.Messages = n
	claimed := b.claim(base, order)
	b.control.Claimed(len(claimed.Items))
	return claimed
}

// claim claims what is due now. First it asks what the calls took whose answer was
// lost.
func (b *inbox) claim(base context.Context, order machine.ClaimRows) machine.Claimed {
	ctx, cancel := context.WithTimeout(base, b.config.Inbox.Lease/2)
	defer cancel()
	began := time.Now()
	for len(b.unsure) > 0 {
		claimed, err := b.leases.Held(ctx, b.config.Name, b.unsure[0])
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
	claimed, err := b.leases.Claim(ctx, store.ClaimOptions{Consumer: b.config.Name, Token: token, Numbers: b.only, Most: order.Messages, Bytes: order.Bytes, Lease: b.config.Inbox.Lease, Ahead: b.noteAhead})
	if err != nil {
		b.mutex.Lock()
		b.unsure = append(b.unsure, token)
		b.mutex.Unlock()
		return machine.Claimed{Failed: true, Err: err}
	}
	return machine.Claimed{Items: b.items(claimed, began)}
}

// partClock is the part of events that the store's clock was ahead and was set back.
const partClock = "clock"

// noteAhead logs that rows, of whichever consumer, were written while the store's clock was ahead.
func (b *inbox) noteAhead(rows int, by time.Duration) {
	b.notify(semel.Event{Kind: semel.EventNotReady, Reason: partClock, Messages: rows, Wait: by,
		Err: fmt.Errorf("the store's clock was set back: rows were dated in the future, by %v at most", by.Round(time.Second))})
	b.notify(semel.Event{Kind: semel.EventReady, Reason: partClock})
	b.config.Logger.Warn("the store's clock was set back: rows were dated in the future, and now wait for no longer than they were to",
		"consumer", b.config.Name, "rows", rows, "ahead", by.Round(time.Second).String())
}

// items are claimed rows as the machine gets them. began is before the store was
// asked, so that a lease ends here no later than there.
func (b *inbox) items(claimed []store.Claimed, began time.Time) []*machine.Item {
	all := make([]*machine.Item, len(claimed))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for i, c := range claimed {
		h := &heldRow{Claimed: c, tokens: []store.Token{c.Token}, ends: began.Add(c.Left)}
		b.held[c.Number] = h
		all[i] = b.item(h, began.Add(c.Left*2/3).Sub(b.since))
	}
	return all
}

// item is a claimed row.
func (b *inbox) item(h *heldRow, until machine.Time) *machine.Item {
	it := &delivery.Stored(&b.config.rules, &h.Row, b.config.setAside(&h.Row), h).Item
	it.Claim = &machine.Claim{Attempts: h.Row.Attempts, Suspect: h.Suspect, Blocked: h.Blocked, Until: until}
	return it
}

// close gives back what no flight has ended, so that nobody waits for its lease.
func (b *inbox) close(ctx context.Context) error {
	b.mutex.Lock()
	all := make([]*heldRow, 0, len(b.held))
	for _, h := range b.held {
		all = append(all, h)
	}
	unsure := slices.Clone(b.unsure)
	b.mutex.Unlock()
	for _, token := range unsure { // what calls took whose answer was lost
		if claimed, err := b.leases.Held(ctx, b.config.Name, token); err == nil {
			for _, c := range claimed {
				all = append(all, &heldRow{Claimed: c, tokens: []store.Token{token}})
			}
		}
	}
	if err := cmp.Or(b.release(ctx, all), ctx.Err()); err != nil {
		return fmt.Errorf("semel: consumer %s: %d claims were not given back and wait for the end of their leases: %w", b.config.Name, len(all), err)
	}
	return nil
}

// left is what waits in the inbox when a run ends idle.
func (b *inbox) left(ctx context.Context) (semel.Unfinished, error) {
	p, err := b.rows.Pending(ctx, b.config.Name)
	if err != nil || p.Later+p.InProgress+p.Due+p.Blocked == 0 {
		return semel.Unfinished{}, err
	}
	return semel.Unfinished{Lane: machine.InboxLane().ID, Messages: p.Later + p.InProgress + p.Due + p.Blocked, Reason: pendingText(p)}, nil
}

// pendingText says what waits, and for what.
func pendingText(p store.Pending) string {
	var parts []string
	if p.Later > 0 {
		next := p.Next.Round(time.Second)
		if next < time.Second {
			next = p.Next.Round(time.Millisecond)
		}
		parts = append(parts, fmt.Sprintf("%d wait for their time, the first for %v", p.Later, next))
	}
	if p.InProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d are claimed by a process that works on them, or has ended", p.InProgress))
	}
	if p.Due > 0 {
		parts = append(parts, fmt.Sprintf("%d are due", p.Due))
	}
	var all []string
	if len(parts) > 0 {
		all = append(all, strings.Join(parts, ", ")+"; whoever runs the consumer works on them")
	}
	if p.Blocked > 0 {
		all = append(all, fmt.Sprintf("%d wait for an earlier version of their streams, or until an earlier message of their keys has ended, which may be parked", p.Blocked))
	}
	return strings.Join(all, "; ")
}
