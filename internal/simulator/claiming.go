package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

// mostStarts is the maximum number of starts of a message's handler if the process crashes each time.
const mostStarts = 3

// claiming is what a process knows about its claims of inbox rows.
type claiming struct {
	// claims contains the claims of the process.
	claims []*model.Claim
	// unsure contains the tokens of claim calls whose responses were lost.
	unsure []uint64
	// pendingReleases contains the claims that must be released.
	pendingReleases []*model.Claim
}

// newToken returns an unused token.
func (w *world) newToken() uint64 {
	w.tokens++
	return w.tokens
}

// claimRows claims rows as the consumer does: first the rows of earlier calls whose responses were lost.
func (p *process) claimRows(a machine.ClaimRows) {
	w, began := p.w, p.w.now
	p.scheduleSoon(func() {
		p.releaseFreed()
		s := w.store
		answer := machine.Claimed{}
		var taken []*model.Claim
		switch {
		case s.Down:
			answer.Failed = true
		case len(p.inbox.unsure) > 0:
			taken = s.Holds(p.inbox.unsure[0], w.storeTime())
			if p.inbox.unsure = p.inbox.unsure[1:]; len(taken) > 0 {
				w.coverage.Add("fault", "what a lost claim took is found")
				break
			}
			fallthrough
		default:
			token := w.newToken()
			lost := w.hurt(plan.TroubleClaim)
			if !lost || w.choices.Flip() {
				w.cutAhead()
				taken = s.Take(a, token, w.storeTime(), w.Plan.Lease)
			}
			if lost {
				w.recordFault("claim fails", "%d rows taken", len(taken))
				p.inbox.unsure = append(p.inbox.unsure, token)
				answer.Failed, taken = true, nil
			}
		}
		for _, c := range taken {
			c.Ends, c.Steps = c.Row.Until-s.Ahead, c.Row.Steps
			p.goesOn(c.Row)
			p.inbox.claims = append(p.inbox.claims, c)
			answer.Items = append(answer.Items, p.newClaimedItem(c, began))
		}
		p.scheduleSoon(func() { p.feed(answer) })
	})
}

// newClaimedItem converts a claim to an item of the machine. The parameter began is the time before the call of the
// store.
func (p *process) newClaimedItem(c *model.Claim, began time.Duration) *machine.Item {
	m := c.Row.Message
	it := &machine.Item{Lane: machine.InboxLane(), Source: m.Source, Identity: m.Identity, Print: c.Row.Print, Route: m.Route, Size: int32(m.Size), Before: -1,
		Claim: &machine.Claim{Attempts: c.Row.Attempts, Suspect: c.Suspect, Blocked: c.Blocked, Until: began + p.w.Plan.Lease*2/3 - p.started}}
	placed(it, m)
	switch {
	case m.Refused != "":
		it.Refused = &machine.Refusal{Reason: m.Refused}
	case steps.Fit(p.names, c.Steps) != nil && p.names != nil:
		it.Refused = &machine.Refusal{Reason: reasonname.Steps}
	case c.Row.Started >= mostStarts:
		it.Refused = &machine.Refusal{Reason: reasonname.Kills}
		p.w.coverage.Add("fault", "what kills its process is parked")
	}
	h := &itemState{delivery: &model.Delivery{Message: m, Lane: p.w.inboxLane}, item: it, claim: c}
	h.attempts, h.runAlone = c.Row.Attempts, c.Suspect
	it.Handle = h
	return it
}

// unclaim releases claims.
func (p *process) unclaim(a machine.Unclaim) {
	for _, it := range a.Items {
		p.inbox.pendingReleases = append(p.inbox.pendingReleases, handOf(it).claim)
	}
	p.scheduleSoon(p.releaseFreed)
}

func (p *process) releaseFreed() {
	freed := p.inbox.pendingReleases
	p.inbox.pendingReleases = nil
	if len(freed) == 0 {
		return
	}
	lost := p.w.store.Down || p.w.hurt(plan.TroubleClaim)
	if lost {
		p.w.coverage.Add("fault", "claims are not given back")
	}
	for _, c := range freed {
		if !lost {
			c.Free(p, p.w.storeTime())
		}
		p.forgetClaim(c)
	}
}

func (p *process) forgetClaim(c *model.Claim) {
	for i, held := range p.inbox.claims {
		if held == c {
			p.inbox.claims = append(p.inbox.claims[:i], p.inbox.claims[i+1:]...)
			return
		}
	}
}

// releaseAll releases all claims of a process that ends normally.
func (p *process) releaseAll() {
	if p.w.store.Down {
		return
	}
	for _, c := range p.inbox.claims {
		c.Free(p, p.w.storeTime())
	}
	p.inbox.claims = nil
}

// keepLeases extends the leases of claims in batches, except the leases of handlers that exceed their timeout.
func (p *process) keepLeases() {
	w := p.w
	p.schedule(w.Plan.Lease/3, func() {
		if !w.store.Down {
			for _, f := range p.flights {
				if f.phase != beginning && !f.stuck {
					f.extend()
				}
			}
		}
		p.keepLeases()
	})
}

// renew extends the leases of the claims in a batch that took long and may run again. The result is the time until
// which the claims may wait.
func (f *flight) renew() (until time.Duration) {
	w := f.p.w
	for _, e := range f.of.Entries {
		c := handOf(e.Item).claim
		if c == nil || !c.Row.Stands(c.Token()) || c.Row.Until <= w.storeTime() {
			continue
		}
		if !w.store.Down && c.Row.Until-w.storeTime() < w.Plan.Lease*2/3 {
			c.Row.Leases(w.storeTime(), w.Plan.Lease)
			c.Ends = w.now + w.Plan.Lease
		}
		if end := c.Row.Until - w.store.Ahead - w.Plan.Lease/3 - f.p.started; until == 0 || end < until {
			until = max(end, 1)
		}
	}
	return until
}

func (f *flight) extend() {
	w := f.p.w
	for i, e := range f.of.Entries {
		c := handOf(e.Item).claim
		switch {
		case c == nil || f.verdicts[i].Kind != store.Fresh:
		case f.outside():
			f.extendLease(c)
		case c.Row.Stands(c.Token()) && c.Row.Until > w.storeTime():
			c.Row.Leases(w.storeTime(), w.Plan.Lease)
			w.coverage.Add("fault", "lease extended")
		default:
			f.lost = true
		}
	}
}

// lookAhead does the work before the transaction of a batch: it claims rows again whose commit has an unknown outcome,
// and records the start of suspected rows. The result says whether the batch may continue.
func (f *flight) lookAhead() bool {
	if f.claimVerdicts != nil {
		return true
	}
	w := f.p.w
	known := make([]store.Verdict, len(f.of.Entries))
	for i, e := range f.of.Entries {
		c := handOf(e.Item).claim
		switch {
		case c == nil:
		case e.Unknown:
			if !f.retake(c, e.As, &known[i]) {
				return false
			}
		case c.Suspect && !c.Started && e.As == machine.AsApplied:
			if c.Row.Stands(c.Token()) && c.Row.Until > w.storeTime() {
				c.Row.Started++
				c.Started = true
			} else {
				known[i].Kind = store.ClaimLost
			}
		}
	}
	f.claimVerdicts = known
	return true
}

// retake claims a row again, so that an old transaction that later tries to end the old claim finds another token. The
// result says whether the response of the store arrived.
func (f *flight) retake(c *model.Claim, as machine.As, known *store.Verdict) bool {
	w := f.p.w
	from := len(c.Tokens)
	c.Tokens = append(c.Tokens, w.newToken()) // also if the response is lost
	lost := w.hurt(plan.TroubleClaim)
	if !lost || w.choices.Flip() {
		for _, old := range c.Tokens[:from] {
			if c.Row.Stands(old) {
				c.Row.Token = c.Token()
				c.Row.Leases(w.storeTime(), w.Plan.Lease)
				break
			}
		}
	}
	switch {
	case lost:
		w.recordFault("answer of a retake lost", "f%d", f.of.Number)
		f.fail(store.ClassDown)
		return false
	case c.Row.Stands(c.Token()):
		w.coverage.Add("fault", "retaken after an unknown commit")
	case c.Row.Token == 0 && ((as == machine.AsWaiting || as == machine.AsBlocked) && c.Row.As == as || !c.Row.Waits() && model.Outcomes[c.Row.As] == model.Outcomes[as]):
		*known = store.Verdict{Kind: store.Seen, Was: model.Outcomes[as], Known: true}
		w.coverage.Add("fault", "claim ended by an unknown commit")
	default:
		known.Kind = store.ClaimLost
	}
	return true
}

// look returns the store's answer about the claim of an entry.
func (f *flight) look(i int) store.Verdict {
	c := handOf(f.of.Entries[i].Item).claim
	switch {
	case f.claimVerdicts[i].Kind != 0:
		return f.claimVerdicts[i]
	case c.Row.Stands(c.Token()) && c.Row.Until > f.p.w.storeTime() && (!f.p.w.Plan.Twins || f.p.w.store.WaitsFor(c.Row)):
		return store.Verdict{Kind: store.Fresh}
	}
	return store.Verdict{Kind: store.ClaimLost}
}

// split separates the rows of a commit into ends of claims and other rows.
func (f *flight) split(rows []machine.Row) (ends, others []machine.Row) {
	for _, r := range rows {
		if handOf(f.of.Entries[r.Entry].Item).claim != nil {
			ends = append(ends, r)
		} else {
			others = append(others, r)
		}
	}
	return ends, others
}

// send records the tokens with which a commit ends claims, and the outcomes of the calls.
func (f *flight) send(a machine.Commit) {
	for i := range a.Rows {
		if c := handOf(f.of.Entries[a.Rows[i].Entry].Item).claim; c != nil {
			if f.endedTokens == nil {
				f.endedTokens = map[int]uint64{}
			}
			f.endedTokens[a.Rows[i].Entry], f.callEnd = c.Token(), c.Calls.Outcome()
		}
	}
}

// claimsLost reports whether a commit contains the end of a claim that is no longer valid.
func (f *flight) claimsLost(a machine.Commit) bool {
	ends, _ := f.split(a.Rows)
	for i := range ends {
		c := handOf(f.of.Entries[ends[i].Entry].Item).claim
		if !c.Row.Stands(f.endedTokens[ends[i].Entry]) {
			return true
		}
		if f.p.w.Plan.Twins && !f.p.w.store.WaitsFor(c.Row) {
			return true
		}
	}
	return false
}

// notify wakes other processes that wait for rows.
func (w *world) notify() {
	if !w.Plan.Notifies {
		return
	}
	for _, p := range w.living() {
		if w.choices.Flip() {
			p.scheduleSoon(func() { p.feed(machine.Due{}) })
		}
	}
}

// storeTime returns the time of the store's clock.
func (w *world) storeTime() time.Duration { return w.now + w.store.Ahead }

// storeClock returns the store's clock as a time.Time.
func (w *world) storeClock() time.Time { return model.Moment(w.storeTime()) }

// cutAhead shortens the delays of all rows that were written while the clock was ahead. Callers call cutAhead before
// they claim rows.
func (w *world) cutAhead() {
	if !w.store.Jumped {
		return
	}
	for _, r := range w.store.Inbox {
		if !r.Waits() || r.Follows() {
			continue
		}
		if by := r.Cut(w.storeTime()); by > 0 {
			w.recordFault("a row that was dated ahead waits from now", "%s, by %v", r.Key.ID, by)
		}
		w.arose("trap T113")
		end := r.Due
		if r.Token != 0 {
			end = r.Until
		}
		if end > w.storeTime()+r.Waiting+timing.ClockSlack {
			w.broke("trap T113", "the row of %s waits for %v, and was to wait for %v", r.Key.ID, end-w.storeTime(), r.Waiting)
		}
	}
}

// wrongClocks sets the store's clock hours forward or back for some time, as after a failover to a server with
// another clock.
func (w *world) wrongClocks(times int) {
	if !w.Plan.Clocks || times == 0 {
		return
	}
	w.schedule(w.choices.Wait(w.Plan.Span/2), func() {
		if w.calm || w.quiet {
			return
		}
		ahead := time.Duration(1+w.choices.Below(30)) * time.Hour
		if w.choices.Chance(4) {
			ahead = -ahead
		}
		w.setClock(ahead)
		w.schedule(w.choices.Wait(w.Plan.Span/3), func() {
			w.setClock(0)
			w.wrongClocks(times - 1)
		})
	})
}

// setClock sets the clock of the store, which the sender's simulated store shares. After setClock, no process knows
// which rows can be claimed.
func (w *world) setClock(ahead time.Duration) {
	if w.store.Ahead == ahead {
		return
	}
	w.recordFault("the store's clock jumps", "to %v ahead", ahead)
	for _, each := range w.worlds() {
		each.store.Ahead, each.store.Jumped = ahead, true
		for _, r := range each.store.Inbox {
			r.By = nil
		}
	}
}
