package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// claimsKnown is what the checker knows about the inbox during the life of one process.
type claimsKnown struct {
	asking bool
	// The field empty is true if the last claim got no row.
	empty bool
	// requests is the number of requests to claim rows. triggers is the number of reasons for such a
	// request, apart from the passage of time.
	requests, triggers int
	// halts is true if a claim was released early because its message halts the consumer.
	halts bool
	// waits is the number of rows that this process wrote with a delay.
	waits int
	// delivered is the number of deliveries of the source; all other items are claims.
	delivered int
}

// checkClaimRows checks that the machine may claim rows of the inbox now. The parameter a is the machine's action.
func (c *checker) checkClaimRows(a machine.ClaimRows) {
	conf := c.p.config
	messages, bytes := c.unsettled()
	switch {
	case !conf.Inbox:
		c.broke("protocol", "%s without an inbox", trace.Action(a))
	case c.claims.asking:
		c.broke("protocol", "a second ClaimRows")
	case c.stopping:
		c.broke("protocol", "a ClaimRows after Stop")
	case a.Messages < 1 || a.Bytes < 1:
		c.broke("protocol", "a ClaimRows of nothing: %+v", a)
	case messages+a.Messages > conf.MaxMessages || bytes >= conf.MaxBytes:
		c.broke("law 11", "%s beside %d messages of %d bytes; the bound is %d of %d", trace.Action(a), messages, bytes, conf.MaxMessages, conf.MaxBytes)
	case c.rests():
		c.broke("law 13", "%s while the store is down", trace.Action(a))
	}
	for _, f := range c.p.flights {
		if conf.OneWriter && !f.killed {
			c.broke("D3, turns", "the inbox is asked beside f%d, and would wait for it in the store", f.of.Number)
		}
	}
	c.takesInBreak(a.Messages, a)
	c.claims.asking = true
	c.claims.requests++
	if most := 20 + int(2*c.p.time()/conf.Poll) + 2*c.claims.triggers; c.claims.requests > most {
		c.broke("law 11", "the inbox is asked %d times in %v, and %d would do", c.claims.requests, c.p.time(), most)
	}
}

// checkClaimed is called before the machine gets claimed rows.
func (c *checker) checkClaimed(e machine.Claimed) {
	c.claims.asking = false
	if c.claims.empty = len(e.Items) == 0 && !e.Failed; !c.claims.empty {
		c.claims.triggers++
	}
	for _, it := range e.Items {
		h := handOf(it)
		c.arrival++
		h.arrival = c.arrival
		c.hands = append(c.hands, h)
		c.counts.Claims.Claimed++
		if it.Claim.Suspect {
			c.counts.Claims.Reclaimed++
		}
		c.stepSetAside(h)
	}
}

// checkUnclaim checks that the released claims have not ended and are not in a batch.
func (c *checker) checkUnclaim(a machine.Unclaim) {
	if len(a.Items) == 0 {
		c.broke("protocol", "an Unclaim of nothing")
	}
	for _, it := range a.Items {
		h := handOf(it)
		switch {
		case h.claim == nil:
			c.broke("protocol", "%s was delivered and is given back as a claim", trace.Item(it))
		case h.settled:
			c.broke("law 5", "%s is given back after its end", trace.Item(it))
		case h.flight != nil:
			c.broke("law 5", "%s is given back while f%d is open", trace.Item(it), h.flight.Number)
		case !c.stopping && c.mayHalt():
			c.claims.halts = true
		case !c.stopping && c.p.time() < it.Claim.Until:
			c.broke("law 4", "%s is given back before its time", trace.Item(it))
		}
		h.settled = true
		c.counts.Claims.Released++
	}
}

// lostClaim checks that the machine gives up only a claim that is no longer valid.
func (c *checker) lostClaim(it *machine.Item) {
	h := handOf(it)
	c.arose("law 5")
	switch {
	case h.claim == nil || h.settled || h.flight != nil:
		c.broke("protocol", "%s is let go of", trace.Item(it))
	case h.claim.Row.Stands(h.claim.Token()) && h.claim.Row.Until > c.w.storeTime()+c.w.Plan.Lease && !c.w.store.Jumped:
		c.broke("law 5", "%s is let go of, and its claim stands", trace.Item(it))
	}
	h.settled = true
	c.counts.Claims.Lost++
	c.p.forgetClaim(h.claim)
}

// checkClaimOver checks the end of a claim: the store must contain the end, and the process must have had the claim
// (laws 2 and 5).
func (c *checker) checkClaimOver(s *machine.Settlement) {
	h := handOf(s.Item)
	m := h.delivery.Message
	c.prove(h)
	switch {
	case h.claim == nil:
		c.broke("protocol", "%s was delivered and ends as a claim", m.Name())
		return
	case h.settled:
		c.broke("law 9", "the claim of %s ends twice", m.Name())
	case h.flight != nil:
		c.broke("law 2", "the claim of %s ends while f%d is open", m.Name(), h.flight.Number)
	case s.Ending != h.expected:
		c.broke("law 12", "the claim of %s ends as %s, and should as %s", m.Name(), s.Ending.String(), h.expected.String())
	case h.claim.Row.Stands(h.claim.Token()):
		c.broke("law 5", "the claim of %s has ended as %s, and stands", m.Name(), s.Ending.String())
	case !h.handled && !h.doubt:
		c.broke("law 2", "the claim of %s ends as %s, and no commit of it ended it", m.Name(), s.Ending.String())
	}
	if why := c.wrongEnd(s.Ending, h); why != "" {
		c.broke(why, "%s (%s) ends as %s", m.Name(), trace.Word(model.ConductNames[:], m.Conduct), s.Ending.String())
	}
	c.arose("law 5")
	h.settled = true
	c.countClaim(s.Ending)
	c.p.forgetClaim(h.claim)
}

func (c *checker) countClaim(e source.End) {
	n := &c.counts.Claims
	switch e {
	case source.EndApplied:
		n.Applied++
	case source.EndDuplicate:
		n.Duplicates++
	case source.EndWaiting:
		n.Waiting++
	case source.EndStepped:
		n.Stepped++
	case source.EndParked:
		n.Parked++
	case source.EndDeadLettered:
		n.DeadLettered++
	case source.EndDiscarded:
		n.Discarded++
	}
}

// claimEntry checks that the batch of a claim begins before the claim's time limit. After the time limit, the lease is
// no longer extended, and another process may have the row.
func (c *checker) claimEntry(f *machine.Flight, e machine.Entry, h *itemState) {
	switch {
	case h.claim == nil:
		return
	case h.worker == 0 && c.p.time() > e.Item.Claim.Until:
		c.broke("D3", "%s is begun in f%d after its time", trace.Item(e.Item), f.Number)
	case e.Item.Refused != nil:
		c.arose("D5")
	}
}

// claimRow checks how the commit of a batch ends the claim of an entry.
func (c *checker) claimRow(f *flight, i int, e machine.Entry, r machine.Row, there bool) {
	v, h := f.verdicts[i], handOf(e.Item)
	c.rowInTurn(r, h)
	if there {
		c.stepEnds(f, i, &r)
	}
	attempts := h.attempts
	if e.As == machine.AsApplied {
		attempts++
	}
	switch {
	case there && (r.Repeat || r.Conflict):
		c.broke("protocol", "the claim of entry %d of f%d is written as a copy's", i, f.of.Number)
	case there && v.Kind != store.Fresh:
		c.broke("law 5", "f%d ends the claim of entry %d, and the store said %s", f.of.Number, i, v.String())
	case !there && v.Kind == store.Fresh:
		c.broke("law 12", "entry %d of f%d is a claim that stands, and does not end with its effect", i, f.of.Number)
	case there && r.As != f.endsAs(i):
		c.broke("law 12", "the claim of entry %d of f%d ends as %s, and its entry is %s", i, f.of.Number, trace.Word(trace.AsNames[:], r.As), trace.Word(trace.AsNames[:], e.As))
	case there && r.Attempts != attempts:
		c.checkAttempts(h, r.Attempts)
	case there && r.As == machine.AsWaiting && r.After <= 0:
		c.broke("law 11", "entry %d of f%d waits for %v", i, f.of.Number, r.After)
	}
}

// mostMoments is the minimum number of future due times that a process remembers. Rows that are due later are found by
// polling.
const mostMoments = 64

// inboxIdle checks that the process ends idle only if it knows of no row that can be claimed: neither from the
// last response nor from the rows that it wrote itself.
func (c *checker) inboxIdle(full bool) {
	if !c.p.config.Inbox || full {
		return
	}
	c.arose("D3")
	if !c.claims.empty || c.claims.asking {
		c.broke("D3", "it ends idle, and the inbox did not say that nothing is due")
	}
	due := func(r *model.Row) bool {
		return r.By == c.p && r.Waits() && r.Token == 0 && r.Due+5*time.Millisecond+4*c.w.Plan.Lag < c.w.storeTime()
	}
	if i := slices.IndexFunc(c.w.store.Inbox, due); i >= 0 && c.claims.waits <= mostMoments {
		c.broke("D3", "it ends idle, and %s, which it wrote, has been due for %v", c.w.store.Inbox[i].Key.ID, c.w.now-c.w.store.Inbox[i].Due)
	}
}

// halting reports whether a message has halted the machine.
func (c *checker) halting() bool { return c.claims.halts || c.p.machine.Counts().Failed > 0 }

// rival reports whether a handler that still runs in a batch may run at the same time as another handler. There are two
// such cases: both handlers are for claims of one row and the earlier claim is lost; or one of the handlers is for a
// claim and the transaction of the batch has ended.
func rival(f *flight, entry int, b *machine.Item) bool {
	x, y := handOf(f.of.Entries[entry].Item).claim, handOf(b).claim
	if !f.tx.Open && (x != nil || y != nil) {
		return true
	}
	return x != nil && y != nil && x.Row == y.Row && x != y
}

// begins reports whether a list of steps begins with the completed steps and has at least one more step.
func begins(names, done []string) bool {
	return len(done) < len(names) && slices.Equal(names[:len(done)], done)
}

// stepSetAside checks whether a claim was parked because the steps of its process were changed (C11).
func (c *checker) stepSetAside(h *itemState) {
	if c.w.Plan.Steps == 0 {
		return
	}
	refused := h.item.Refused != nil && h.item.Refused.Reason == reasonname.Steps
	done := c.w.store.StepsDone[h.delivery.Message.ID]
	switch {
	case !h.claim.Row.Stands(h.claim.Token()):
	case refused && begins(c.p.names, done):
		c.broke("C11", "%s is set aside because its steps %q were changed, and they are the first of %q", trace.Item(h.item), done, c.p.names)
	case refused:
		c.w.coverage.Add("fault", "the steps of a message are no longer its consumer's")
	case c.w.Plan.Change != plan.Unchanged && c.w.now > c.w.Plan.ChangeAt && len(done) > 0:
		c.w.coverage.Add("fault", "a message goes on with steps that were changed")
	}
}

// stepBegins checks that the step after the completed steps runs, and that it gets the outputs of the completed steps.
func (c *checker) stepBegins(f *flight, entry int) {
	h := handOf(f.of.Entries[entry].Item)
	if h.claim == nil || len(c.p.names) == 0 || !h.claim.Row.Stands(h.claim.Token()) {
		return
	}
	id := h.delivery.Message.ID
	done, told := c.w.store.StepsDone[id], h.claim.Steps
	switch {
	case !slices.Equal(done, stepNamesOf(told)):
		c.broke("C11", "%s runs, told that %q are done, and %q are", trace.Item(h.item), stepNamesOf(told), done)
	case !begins(c.p.names, done):
		c.broke("C11", "%s runs in f%d, and its steps %q are not the first of %q", trace.Item(h.item), f.of.Number, done, c.p.names)
	case slices.ContainsFunc(told, func(s store.StepDone) bool { return string(s.Output) != s.Name+" of "+id }):
		c.broke("C11", "%s is told outputs that its steps did not give: %q", trace.Item(h.item), told)
	}
}

// stepEnds checks how the claim of an entry ends after a step has run.
func (c *checker) stepEnds(f *flight, i int, r *machine.Row) {
	if want := f.endsAs(i); len(c.p.names) > 0 && r.As != want {
		c.broke("C11", "the claim of entry %d of f%d ends as %s, and should as %s", i, f.of.Number, trace.Word(trace.AsNames[:], r.As), trace.Word(trace.AsNames[:], want))
	}
}

// stepDone checks a step whose effect is now committed: the step is the next step of its message, the effect
// happens for the first time, and the same commit records the step in the row (C11).
func (c *checker) stepDone(f *flight, x model.Effect) {
	s, id := c.w.store, x.Message.ID
	if x.Step == "" {
		return
	}
	c.arose("C11")
	before := s.StepsDone[id]
	done := append(slices.Clip(before), x.Step)
	s.StepsDone[id] = done
	r := handOf(f.of.Entries[x.Entry].Item).claim.Row
	last := len(done) == len(c.p.names)
	switch {
	case slices.Contains(before, x.Step):
		c.broke("C11", "the step %s of %s takes effect a second time", x.Step, x.Message.Name())
	case !begins(c.p.names, before) || c.p.names[len(before)] != x.Step:
		c.broke("C11", "the step %s of %s takes effect after %q, and the steps are %q", x.Step, x.Message.Name(), before, c.p.names)
	case last != (r.As == machine.AsApplied):
		c.broke("C11", "%s is %s with the step %s, and its steps are %q", x.Message.Name(), trace.Word(trace.AsNames[:], r.As), x.Step, c.p.names)
	case !slices.Equal(stepNamesOf(r.Steps), done):
		c.broke("C11", "the row of %s says that %q are done, and %q are", x.Message.Name(), stepNamesOf(r.Steps), done)
	case r.Attempts > 0 && !last:
		c.broke("C11", "%s has %d attempts before its next step", x.Message.Name(), r.Attempts)
	}
	if m := x.Message; m.Version > 0 && x.Part && m.Version != c.w.ledger[m.Stream]+1 {
		c.broke("B9", "a step of %s takes effect as version %d of %s, which is at %d", m.Name(), m.Version, m.Stream, c.w.ledger[m.Stream])
	}
}
