package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/steps"
	"github.com/semel-go/semel/store"
)

// claim is a process's claim of a row.
type claim struct {
	row *row
	// tokens are all that the process has written into the row, the present one last.
	tokens  []uint64
	suspect bool
	// started: its start is written down.
	started bool
	// blocked: the row has waited for an earlier version for as long as it may.
	blocked bool
	// steps are those that were done when it was taken, stepped those that are with the one
	// that ran last.
	steps, stepped []store.StepDone
	// calls is what the process knows of those that were made under it.
	calls calls.Claim
	// ends is until when the process surely has it.
	ends time.Duration
	// deaf is how many of the next extensions of its lease are not answered.
	deaf int
}

func (c *claim) token() uint64 { return c.tokens[len(c.tokens)-1] }

// mostStarts is how often a message is begun whose process does not come to its end.
const mostStarts = 3

// claiming is what a process knows of its inbox.
type claiming struct {
	// held are its claims.
	held []*claim
	// unsure are tokens of calls whose answers were lost.
	unsure []uint64
	// freed are to be given back.
	freed []*claim
}

// newToken returns a token that nobody has.
func (w *world) newToken() uint64 {
	w.tokens++
	return w.tokens
}

// claimRows asks the store for rows, as the shell does: first for what calls took
// whose answers were lost.
func (p *process) claimRows(a machine.ClaimRows) {
	w, began := p.w, p.w.now
	p.soon(func() {
		p.releaseFreed()
		s := w.store
		answer := machine.Claimed{}
		var taken []*claim
		switch {
		case s.down:
			answer.Failed = true
		case len(p.inbox.unsure) > 0:
			taken = s.holds(p.inbox.unsure[0], w.at())
			if p.inbox.unsure = p.inbox.unsure[1:]; len(taken) > 0 {
				w.coverage.add("fault", "what a lost claim took is found")
				break
			}
			fallthrough
		default:
			token := w.newToken()
			lost := w.hurt(troubleClaim)
			if !lost || w.choices.flip() {
				w.cutAhead()
				taken = s.take(a, token, w.at(), w.plan.lease)
			}
			if lost {
				w.fault("claim fails", "%d rows taken", len(taken))
				p.inbox.unsure = append(p.inbox.unsure, token)
				answer.Failed, taken = true, nil
			}
		}
		for _, c := range taken {
			c.ends, c.steps = c.row.until-s.ahead, c.row.steps
			p.goesOn(c.row)
			p.inbox.held = append(p.inbox.held, c)
			answer.Items = append(answer.Items, p.claimed(c, began))
		}
		p.soon(func() { p.feed(answer) })
	})
}

// claimed is a claim as the machine gets it. began is before the store was asked.
func (p *process) claimed(c *claim, began time.Duration) *machine.Item {
	m := c.row.message
	it := &machine.Item{Lane: machine.InboxLane(), Source: m.source, Identity: m.identity, Print: c.row.print, Route: m.route, Size: int32(m.size), Before: -1,
		Claim: &machine.Claim{Attempts: c.row.attempts, Suspect: c.suspect, Blocked: c.blocked, Until: began + p.w.plan.lease*2/3 - p.started}}
	placed(it, m)
	switch {
	case m.refused != "":
		it.Refused = &machine.Refusal{Reason: m.refused}
	case steps.Fit(p.names, c.steps) != nil && p.names != nil:
		it.Refused = &machine.Refusal{Reason: semel.ReasonSteps}
	case c.row.started >= mostStarts:
		it.Refused = &machine.Refusal{Reason: semel.ReasonKills}
		p.w.coverage.add("fault", "what kills its process is parked")
	}
	h := &handed{delivery: &delivery{message: m, lane: p.w.inboxLane}, item: it, claim: c}
	h.attempts, h.alone = c.row.attempts, c.suspect
	it.Handle = h
	return it
}

// unclaim gives claims back, before the inbox is asked again.
func (p *process) unclaim(a machine.Unclaim) {
	for _, it := range a.Items {
		p.inbox.freed = append(p.inbox.freed, handOf(it).claim)
	}
	p.soon(p.releaseFreed)
}

func (p *process) releaseFreed() {
	freed := p.inbox.freed
	p.inbox.freed = nil
	if len(freed) == 0 {
		return
	}
	lost := p.w.store.down || p.w.hurt(troubleClaim)
	if lost {
		p.w.coverage.add("fault", "claims are not given back")
	}
	for _, c := range freed {
		if !lost {
			c.free(p)
		}
		p.forgetClaim(c)
	}
}

func (p *process) forgetClaim(c *claim) {
	for i, held := range p.inbox.held {
		if held == c {
			p.inbox.held = append(p.inbox.held[:i], p.inbox.held[i+1:]...)
			return
		}
	}
}

// releaseAll gives back what a process that ends in good order has.
func (p *process) releaseAll() {
	if p.w.store.down {
		return
	}
	for _, c := range p.inbox.held {
		c.free(p)
	}
	p.inbox.held = nil
}

// keepLeases extends the leases of what flies, for as long as its handlers keep
// their time.
func (p *process) keepLeases() {
	w := p.w
	p.later(w.plan.lease/3, func() {
		if !w.store.down {
			for _, f := range p.flights {
				if f.phase != beginning && !f.stuck {
					f.extend()
				}
			}
		}
		p.keepLeases()
	})
}

// renew extends the leases of claims that may fly again, if the flight was long, and
// says until when they may wait for it.
func (f *flight) renew() (until time.Duration) {
	w := f.p.w
	for _, e := range f.of.Entries {
		c := handOf(e.Item).claim
		if c == nil || !c.row.stands(c.token()) || c.row.until <= w.at() {
			continue
		}
		if !w.store.down && c.row.until-w.at() < w.plan.lease*2/3 {
			c.row.leases(w.at(), w.plan.lease)
			c.ends = w.now + w.plan.lease
		}
		if end := c.row.until - w.store.ahead - w.plan.lease/3 - f.p.started; until == 0 || end < until {
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
			f.keep(c)
		case c.row.stands(c.token()) && c.row.until > w.at():
			c.row.leases(w.at(), w.plan.lease)
			w.coverage.add("fault", "lease extended")
		default:
			f.lost = true
		}
	}
}

// lookAhead does what comes before a flight's transaction: claims whose commit is
// unknown are retaken, and the start of those that are suspect is written down. It
// reports whether the flight may go on.
func (f *flight) lookAhead() bool {
	if f.known != nil {
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
		case c.suspect && !c.started && e.As == machine.AsApplied:
			if c.row.stands(c.token()) && c.row.until > w.at() {
				c.row.started++
				c.started = true
			} else {
				known[i].Kind = store.ClaimLost
			}
		}
	}
	f.known = known
	return true
}

// retake takes a row anew; its old transaction may still end it, and then meets
// another token. It reports whether the store's answer came.
func (f *flight) retake(c *claim, as machine.As, known *store.Verdict) bool {
	w := f.p.w
	from := len(c.tokens)
	c.tokens = append(c.tokens, w.newToken()) // also if the answer is lost
	lost := w.hurt(troubleClaim)
	if !lost || w.choices.flip() {
		for _, old := range c.tokens[:from] {
			if c.row.stands(old) {
				c.row.token = c.token()
				c.row.leases(w.at(), w.plan.lease)
				break
			}
		}
	}
	switch {
	case lost:
		w.fault("answer of a retake lost", "f%d", f.of.Number)
		f.fail(store.ClassDown)
		return false
	case c.row.stands(c.token()):
		w.coverage.add("fault", "retaken after an unknown commit")
	case c.row.token == 0 && ((as == machine.AsWaiting || as == machine.AsBlocked) && c.row.as == as || !c.row.waits() && outcomes[c.row.as] == outcomes[as]):
		*known = store.Verdict{Kind: store.Seen, Was: outcomes[as], Known: true}
		w.coverage.add("fault", "claim ended by an unknown commit")
	default:
		known.Kind = store.ClaimLost
	}
	return true
}

// look answers what a flight asks of a claim.
func (f *flight) look(i int) store.Verdict {
	c := handOf(f.of.Entries[i].Item).claim
	switch {
	case f.known[i].Kind != 0:
		return f.known[i]
	case c.row.stands(c.token()) && c.row.until > f.p.w.at() && (!f.p.w.plan.twins || f.p.w.store.waitsFor(c.row)):
		return store.Verdict{Kind: store.Fresh}
	}
	return store.Verdict{Kind: store.ClaimLost}
}

// split parts the ends of claims from the rows of a commit.
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

// send remembers under which tokens a commit ends claims, and what it says of their calls.
func (f *flight) send(a machine.Commit) {
	for i := range a.Rows {
		if c := handOf(f.of.Entries[a.Rows[i].Entry].Item).claim; c != nil {
			if f.sent == nil {
				f.sent = map[int]uint64{}
			}
			f.sent[a.Rows[i].Entry], f.callEnd = c.token(), c.calls.Outcome()
		}
	}
}

// claimsLost reports whether a claim that a commit would end does not stand.
func (f *flight) claimsLost(a machine.Commit) bool {
	ends, _ := f.split(a.Rows)
	for i := range ends {
		c := handOf(f.of.Entries[ends[i].Entry].Item).claim
		if !c.row.stands(f.sent[ends[i].Entry]) {
			return true
		}
		if f.p.w.plan.twins && !f.p.w.store.waitsFor(c.row) {
			return true
		}
	}
	return false
}

// notify tells processes that something is due, as a notification does.
func (w *world) notify() {
	if !w.plan.notifies {
		return
	}
	for _, p := range w.living() {
		if w.choices.flip() {
			p.soon(func() { p.feed(machine.Due{}) })
		}
	}
}
