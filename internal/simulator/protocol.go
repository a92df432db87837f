package simulator

import (
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// checkAction is called before an action of the machine is carried out.
func (c *checker) checkAction(a machine.Action) {
	if c.over {
		c.broke("protocol", "%s follows Done", trace.Action(a))
		return
	}
	switch a := a.(type) {
	case machine.Fetch:
		c.checkFetch(a)
	case machine.CancelFetch:
		c.checkCancelFetch(a)
	case machine.ClaimRows:
		c.checkClaimRows(a)
	case machine.Unclaim:
		c.checkUnclaim(a)
	case machine.Over:
		c.checkClaimOver(&a.Settlement)
	case machine.Begin:
		c.checkBegin(a.Flight)
	case machine.Run:
		c.checkRun(a)
	case machine.StopRun:
		c.inPhase(a, a.Flight, running)
	case machine.Kill:
		c.inPhase(a, a.Flight, running)
	case machine.Commit:
		c.checkCommit(a)
	case machine.Rollback:
		if f := c.inPhase(a, a.Flight, begun, ran); f != nil && f.failed {
			c.arose("law 3")
		}
	case *machine.Settle:
		c.checkSettle(a)
	case machine.Release:
		c.checkRelease(a.Lane)
	case machine.Wake:
		if a.At <= c.p.time() {
			c.broke("law 11", "a Wake at %v, and it is %v", a.At, c.p.time())
		}
	case machine.Report:
		c.checkReport(a)
	}
}

// inPhase checks that a batch is open and in one of the given phases, and returns the batch.
func (c *checker) inPhase(a machine.Action, of *machine.Flight, phases ...phase) *flight {
	f := c.p.find(of)
	if f == nil {
		c.broke("protocol", "%s for a flight that is not open", trace.Action(a))
		return nil
	}
	for _, p := range phases {
		if f.phase == p {
			return f
		}
	}
	c.broke("protocol", "%s for a flight that is %s", trace.Action(a), trace.Word(trace.PhaseNames[:], f.phase))
	return nil
}

func (c *checker) checkFetch(a machine.Fetch) {
	conf := c.p.config
	messages, bytes := c.unsettled()
	switch {
	case c.fetching:
		c.broke("protocol", "a second Fetch")
	case c.sourceEnded:
		c.broke("protocol", "a Fetch after the source's end")
	case c.stopping:
		c.broke("protocol", "a Fetch after Stop")
	case a.Messages < 1 || a.Bytes < 1:
		c.broke("protocol", "a Fetch of nothing: %+v", a)
	case messages+a.Messages > conf.MaxMessages || bytes >= conf.MaxBytes:
		c.broke("law 11", "%s beside %d messages of %d bytes; the bound is %d of %d", trace.Action(a),
			messages, bytes, conf.MaxMessages, conf.MaxBytes)
	}
	if messages > 0 && messages+a.Messages == conf.MaxMessages {
		c.arose("law 11")
	}
	c.fetchesInOutage(a)
	if !conf.Receive {
		c.takesInBreak(a.Messages, a)
	}
	c.fetching = true
}

func (c *checker) checkBegin(f *machine.Flight) {
	conf := c.p.config
	c.checkOutage(f)
	c.checkBackoff(f)
	c.keyed(f)
	c.oneTry(f)
	switch {
	case c.p.find(f) != nil:
		c.broke("protocol", "f%d begins twice", f.Number)
	case len(f.Entries) == 0 || len(f.Entries) > conf.Most:
		c.broke("protocol", "f%d has %d entries; the most is %d", f.Number, len(f.Entries), conf.Most)
	case f.Worker < 0 || f.Worker >= conf.Workers:
		c.broke("protocol", "f%d is of worker %d", f.Number, f.Worker)
	}
	for _, g := range c.p.flights {
		if conf.OneWriter && !g.killed {
			c.broke("D3, turns", "f%d begins beside f%d, and would wait for it in the store", f.Number, g.of.Number)
		}
		if g.of.Worker == f.Worker {
			c.broke("law 11", "worker %d has f%d and f%d", f.Worker, g.of.Number, f.Number)
		}
	}
	if conf.OneWriter && c.claims.asking {
		c.broke("D3, turns", "f%d begins while the inbox is asked, and would wait for it in the store", f.Number)
	}
	if conf.OneWriter && conf.Workers > 1 {
		c.arose("D3, turns")
	}
	marked := map[string]bool{}
	arrival := 0
	for _, e := range f.Entries {
		h := handOf(e.Item)
		if h.arrival <= arrival {
			c.broke("protocol", "f%d is not in the order of arrival", f.Number)
		}
		arrival = h.arrival
		if id := identityOf(e.Item); !e.Unmarked && h.claim == nil {
			if marked[id] {
				c.broke("protocol", "f%d marks %s twice", f.Number, id)
			}
			marked[id] = true
			c.formersApart(f, marked, h.delivery.Message)
		}
		c.checkEntry(f, e, h)
	}
}

// checkEntry checks one entry of a batch that begins.
func (c *checker) checkEntry(f *machine.Flight, e machine.Entry, h *itemState) {
	m := h.delivery.Message
	c.prove(h)
	c.foreignEntry(f, e, m)
	switch {
	case h.flight != nil:
		c.broke("protocol", "%s is in f%d and in f%d", m.Name(), h.flight.Number, f.Number)
	case h.settling || h.settled:
		c.broke("protocol", "%s is in f%d after it was settled", m.Name(), f.Number)
	case h.stale:
		c.broke("protocol", "%s is in f%d after its lane was gone", m.Name(), f.Number)
	case h.isCopy:
		c.broke("law 9", "%s is in f%d after it was found to be a copy", m.Name(), f.Number)
	case h.claim == nil && m.Refused != "" && (e.As != machine.AsParked && e.As != machine.AsDeadLettered || len(f.Entries) != 1):
		c.broke("protocol", "%s has no identity and is %s in f%d of %d entries", m.Name(), trace.Word(trace.AsNames[:], e.As), f.Number, len(f.Entries))
	case e.Unmarked && !c.p.config.Unmarked:
		c.broke("law 1", "%s is not marked in f%d", m.Name(), f.Number)
	}
	c.entryInTurn(e, h)
	c.allowed(e.As, h)
	c.claimEntry(f, e, h)
	c.company(f, e, h)
	h.flight, h.worker = f, f.Worker+1
}

func (c *checker) checkRun(a machine.Run) {
	f := c.inPhase(a, a.Flight, begun)
	if f == nil {
		return
	}
	if len(a.Fresh) == 0 || a.Budget <= 0 {
		c.broke("protocol", "%s of nothing", trace.Action(a))
	}
	c.mayRun(a)
	for _, i := range a.Fresh {
		if it := a.Flight.Entries[max(0, min(i, len(a.Flight.Entries)-1))].Item; it.Refused != nil {
			c.broke("D5", "%s is not to be processed, and its handler runs", trace.Item(it))
		}
	}
	c.proveBeforeRun(a)
	last := -1
	for _, i := range a.Fresh {
		if i <= last || i >= len(f.verdicts) {
			c.broke("protocol", "%s is not in order", trace.Action(a))
			return
		}
		last = i
		if cannotRunNow(f.verdicts[i]) && f.verdicts[i].Kind != store.Old {
			c.broke("B9", "f%d runs entry %d, which is %s", a.Flight.Number, i, f.verdicts[i].String())
		}
		if f.verdicts[i].Kind != store.Fresh || a.Flight.Entries[i].As != machine.AsApplied {
			c.broke("law 9", "f%d runs entry %d, which is %s", a.Flight.Number, i, f.verdicts[i].String())
		}
	}
	c.runs(a.Flight, a.Fresh)
}

// mayRun checks that no handler starts after a stop, or in a batch with an item of a revoked lane (case 10).
func (c *checker) mayRun(a machine.Run) {
	for _, e := range a.Flight.Entries {
		if c.stopping || c.lanes[e.Item.Lane].revoking {
			c.broke("case 10", "f%d runs its handlers, and %s is to be left", a.Flight.Number, handOf(e.Item).delivery.Message.Name())
			return
		}
	}
}

// handling is called when a handler starts.
func (c *checker) handling(f *flight, entry int) {
	if f.stop {
		c.broke("world", "a handler starts after StopRun")
	}
	m := f.message(entry)
	c.stepBegins(f, entry)
	for _, g := range c.p.flights {
		if g == f || g.phase != running || c.p.config.Unmarked {
			continue
		}
		for _, i := range g.call.Fresh {
			if g.message(i).ID == m.ID && !rival(g, i, f.of.Entries[entry].Item) {
				c.broke("law 9", "two handlers have %s at once", m.ID)
			}
		}
	}
}

func (c *checker) checkRelease(l source.Lane) {
	s := c.lanes[l]
	if s == nil || !s.revoking || s.released {
		c.broke("protocol", "a Release of %s/%d, which nobody asked for", l.ID, l.Epoch)
		return
	}
	s.released = true
	for _, h := range c.hands {
		if h.item.Lane != l {
			continue
		}
		if !s.gone && (h.flight != nil || h.settling) {
			c.broke("law 2", "%s/%d is released while %s is under way", l.ID, l.Epoch, h.delivery.Message.Name())
		}
		c.dropDelivery(h)
	}
}

// checkDone checks the end of a process.
func (c *checker) checkDone(a machine.Done) {
	c.over = true
	if c.counts.Rerun > 0 && c.counts.Retried > 0 && c.counts.Duplicates > 0 {
		c.arose("counts")
	}
	clean := len(c.p.flights) == 0 && c.p.settles == 0
	drained := c.stopping && c.w.now-c.stopAt >= c.p.config.Drain
	if !clean && !drained && !a.Halted {
		c.broke("protocol", "Done with %d flights and %d settlements open", len(c.p.flights), c.p.settles)
	}
	if a.Idle {
		c.checkIdle()
		c.inboxIdle(a.Full)
		c.checkUnfinished(a)
	}
	if !a.Halted {
		return
	}
	if a.Item == nil {
		c.broke("protocol", "Done is halted by nobody")
		return
	}
	if !c.halting() && handOf(a.Item).claim == nil {
		c.broke("counts", "a message has halted the machine and none has failed")
	}
	c.prove(handOf(a.Item))
	c.halted(handOf(a.Item).delivery.Message)
}

// checkLeaving checks that a stop ends, and that a revoked lane is released, as soon as no work is in progress
// (case 10).
func (c *checker) checkLeaving() {
	if c.over || c.p.over {
		return
	}
	if c.stopping && c.p.fetch == nil && !c.claims.asking && len(c.p.flights) == 0 && c.p.settles == 0 && !c.settlesFailed() {
		c.broke("case 10", "nothing is under way, and a stop has not ended")
	}
	for _, l := range c.w.Source.Lanes {
		s := c.lanes[l.Current()]
		if !l.Held || s == nil || !s.revoking || s.released {
			continue
		}
		if h := c.underWay(l); h == nil {
			c.broke("case 10", "nothing of %s is under way, and it is revoked and not released", l.ID)
		}
		c.arose("case 10")
	}
}

// underWay returns a delivery for which the release of a revoked lane must wait, or nil if there is none: a delivery in
// a batch, a delivery that is being acked, or a copy of a delivery in a batch.
func (c *checker) underWay(l *model.Lane) *itemState {
	for _, h := range c.hands {
		if h.item.Lane != l.Current() || h.settled || h.stale {
			continue
		}
		if h.flight != nil || h.settling || h.settleFailed || c.flies(h) {
			return h
		}
	}
	return nil
}

// flies reports whether an open batch contains a copy of the delivery, or a message with the same previous
// identity.
func (c *checker) flies(h *itemState) bool {
	return slices.ContainsFunc(c.p.flights, func(f *flight) bool {
		for i := range f.of.Entries {
			if f.message(i).ID == h.delivery.Message.ID || formerOf(f.of.Entries[i].Item) == formerOf(h.item) {
				return true
			}
		}
		return false
	})
}

// settlesFailed reports whether a failed ack, nack or dead letter must be repeated.
func (c *checker) settlesFailed() bool {
	return slices.ContainsFunc(c.hands, func(h *itemState) bool { return h.settleFailed && !h.settled })
}

// checkHeld compares the number of deliveries that the machine reports with the number of deliveries that the machine
// got and has not acked (law 11). During a stop or a revocation, the machine may drop deliveries at any time;
// checkLeaving checks the end of the stop or revocation.
func (c *checker) checkHeld() {
	if c.over || c.p.over || c.stopping || c.halting() {
		return
	}
	messages, bytes := 0, int64(0)
	for _, h := range c.hands {
		switch {
		case h.settled:
			continue
		case h.stale && h.settleFailed, !h.stale && c.lanes[h.item.Lane].revoking:
			return
		case h.stale && h.flight == nil && !h.settling:
			continue // dropped together with its lane
		}
		messages++
		bytes += int64(h.item.Size)
	}
	if m, b := c.p.machine.Unsettled(); m != messages || b != bytes {
		c.broke("law 11", "the machine holds %d messages of %d bytes, and should hold %d of %d", m, b, messages, bytes)
	}
}

// checkSize compares the capacity of the machine's queues with the limit. checkSize also compares the number of items
// that a step examined or moved with the number of items that the step could have moved (law 11).
func (c *checker) checkSize(e machine.Event) {
	size := c.p.machine.Size()
	held, _ := c.p.machine.Unsettled()
	brought := 0
	switch e := e.(type) {
	case machine.Fetched:
		brought = len(e.Items)
	case machine.Claimed:
		brought = len(e.Items)
	}
	touched := size.Touched - c.size.Touched
	switch most := 8*(c.held+brought) + 8; {
	case touched > most:
		c.broke("law 11", "a step touched %d items; the machine held %d and was brought %d", touched, c.held, brought)
	case size.Queue > 4*c.p.config.MaxMessages+8:
		c.broke("law 11", "a queue has room for %d; the bound is %d messages", size.Queue, c.p.config.MaxMessages)
	case held == 0 && size.Kept > 0:
		c.broke("law 11", "the machine holds no message and keeps %d entries", size.Kept)
	}
	if touched > 8 && held == 0 {
		c.w.coverage.Add("fault", "many deliveries left at once")
	}
	c.size, c.held = size, held
}
