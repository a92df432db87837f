package simulator

import (
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// expect records how the entries of a committed batch must end, according to the store's answers. If the lane of a
// delivery is lost, the delivery is counted but not acked.
func (c *checker) expect(f *flight) {
	for i, e := range f.of.Entries {
		h := handOf(e.Item)
		if slices.Contains(f.trim, i) {
			continue
		}
		h.expected = c.endOf(f.endsAs(i), f.verdicts[i], h)
		if h.expected == source.EndApplied && h.stepInDoubt && f.verdicts[i].Kind != store.Fresh {
			h.expected = source.EndStepped // the lost commit completed the step, and other processes continued with the next step
		}
		if h.expected == source.EndReceived || h.expected == source.EndWaiting || h.expected == source.EndStepped {
			c.claims.triggers += 2 // the row can be claimed now or after its delay
			c.claims.waits++
		}
		if h.stale {
			c.count(h.expected)
		}
	}
}

// endOf returns how an entry must end, or EndUnknown if the entry must run again.
func (c *checker) endOf(as machine.As, v store.Verdict, h *itemState) source.End {
	conf := c.p.config
	conflict := v.Kind == store.Conflict
	switch {
	case v.Kind == store.Busy, v.Kind == store.Newer, v.Kind == store.ClaimLost, cannotRunNow(v), conflict && conf.OnConflict == machine.EndHalt:
		return source.EndUnknown
	case newConflict(v) && conf.OnConflict == machine.EndDeadLetter && !h.copied:
		return source.EndUnknown
	case newConflict(v), conflict && v.Known && (conf.OnConflict == machine.EndKeepFirst || h.doubt):
		return source.EndConflict
	case v.Kind != store.Fresh && !(h.doubt && c.ownOutcome(as, v, h)):
		return source.EndDuplicate
	}
	return ends[as]
}

// ownOutcome reports whether an existing marker comes from the item's own commit of unknown outcome, or is a
// consequence of that commit.
func (c *checker) ownOutcome(as machine.As, v store.Verdict, h *itemState) bool {
	if v.Former || h.conflicted {
		return false
	}
	if h.claim == nil && v.Kind == store.Seen && model.Outcomes[as] == store.Waiting {
		return true
	}
	return v.Already(model.Outcomes[as]) && as != machine.AsDuplicate
}

// newConflict reports whether the store's answer v is a conflict that has no row yet.
func newConflict(v store.Verdict) bool { return v.Kind == store.Conflict && !v.Known }

// ends maps the outcome in a commit to the end of the delivery.
var ends = [...]source.End{
	machine.AsApplied:      source.EndApplied,
	machine.AsDuplicate:    source.EndDuplicate,
	machine.AsParked:       source.EndParked,
	machine.AsDiscarded:    source.EndDiscarded,
	machine.AsDeadLettered: source.EndDeadLettered,
	machine.AsReceived:     source.EndReceived,
	machine.AsWaiting:      source.EndWaiting,
	machine.AsBlocked:      source.EndWaiting,
	machine.AsOverdue:      source.EndParked,
	machine.AsStepped:      source.EndStepped,
}

// doubts records which markers a commit may have written whose outcome is unknown. If the store later reports one of
// these markers as already written, the checker knows that the item's own commit may have written it (case 3).
func (c *checker) doubts(f *flight) {
	for i, e := range f.of.Entries {
		h := handOf(e.Item)
		conf := c.p.config.OnConflict
		kept := newConflict(f.verdicts[i]) && (conf == machine.EndPark || conf == machine.EndDeadLetter && h.copied)
		if f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i) || kept {
			h.doubt, h.conflicted = true, kept
			h.stepInDoubt = f.endsAs(i) == machine.AsStepped
			c.arose("case 3")
		}
	}
}

// The checker calls its method checkMarked with the store's answers for the markers of a batch. If the answer is Fresh,
// the commit with the unknown outcome has not written that marker.
func (c *checker) checkMarked(e machine.Marked) {
	for i, v := range e.Verdicts {
		if v.Kind == store.Fresh || cannotRunNow(v) {
			handOf(e.Flight.Entries[i].Item).doubt = false
		}
	}
}

// ending checks the end of an acked delivery: it must follow from the commit of its batch, or the delivery must be a
// copy of a delivery that ended with its commit.
func (c *checker) ending(s *machine.Settlement, h *itemState) {
	m := h.delivery.Message
	want := h.expected
	if want == source.EndUnknown && h.endsAsOld() {
		want = ends[h.requiredOutcome]
	}
	if want == source.EndUnknown {
		want = source.EndDuplicate // the delivery ended with its copy, or a constraint reported the duplicate
	}
	law := "law 12"
	if h.doubt {
		law = "case 3"
	}
	if s.Ending != want {
		c.broke(law, "%s is settled as %s, and should be as %s", m.Name(), s.Ending.String(), want.String())
	}
}

// checkReport counts the reports, and checks that a failure does not count as an attempt of a message that cannot
// have caused the failure.
func (c *checker) checkReport(a machine.Report) {
	if int(a.Kind) < len(c.told) {
		c.told[a.Kind]++
	}
	switch a.Kind {
	case machine.ReportNotReady, machine.ReportReady:
		c.readiness(a)
		if a.Part == machine.PartBreaker {
			c.breakerSaid(a)
		}
	case machine.ReportRetry:
		c.checkRetry(a)
	case machine.ReportTrial:
		c.trialBegins(a)
	case machine.ReportTrialEnds:
		c.trialEnds()
	case machine.ReportClaimLost:
		c.lostClaim(a.Item)
	case machine.ReportFull:
		c.checkFullReport(a)
	case machine.ReportNewer:
		c.heldForNewer(a)
	case machine.ReportCommitted, machine.ReportUnknown, machine.ReportContended:
		if c.p.last == nil || a.N != len(c.p.last.of.Entries) {
			c.broke("reports", "%s says %d entries", trace.Word(trace.ReportNames[:], a.Kind), a.N)
		}
	}
}

func (c *checker) checkRetry(a machine.Report) {
	h := handOf(a.Item)
	inInbox := h.claim != nil || c.p.config.Wait
	h.waitsInInbox = h.waitsInInbox || (a.Wait > c.p.config.MaxInMemoryWait || h.claim != nil && !h.unwritten) && inInbox
	if !h.unwritten {
		c.checkRetryDelay(a.Wait)
	}
	if a.Wait > c.p.config.MaxInMemoryWait && a.Wait > c.retries.lastDelay && !inInbox {
		c.broke("case 6", "%s waits %v in memory; the most is %v", trace.Item(a.Item), a.Wait, c.p.config.MaxInMemoryWait)
	}
	c.arose("case 6")
	if h.unwritten {
		return
	}
	h.nextRunCounts = true
	c.prove(h)
	if m := h.delivery.Message; m.Harmless && m.Charged == 0 {
		c.broke("law 7", "%s is charged with a failure, and it can have none (%v)", m.Name(), a.Err)
	}
}

// exact contains the kinds of reports whose number follows from one event alone.
var exact = [...]machine.ReportKind{machine.ReportCommitted, machine.ReportUnknown, machine.ReportContended, machine.ReportBackstop, machine.ReportStuck}

// checkReportCounts checks that the machine reported an event the expected number of times.
func (c *checker) checkReportCounts(e machine.Event) {
	var want [len(trace.ReportNames)]int
	switch e := e.(type) {
	case machine.Stuck:
		want[machine.ReportStuck] = 1
	case machine.Ended:
		c.reportsOfEnd(e, &want)
	}
	for _, k := range exact {
		if c.told[k] != want[k] {
			c.broke("reports", "%s is told %d times of one event, and should be %d times", trace.Word(trace.ReportNames[:], k), c.told[k], want[k])
		}
		if want[k] > 0 {
			c.arose("reports")
		}
	}
	clear(c.told[:])
}

func (c *checker) reportsOfEnd(e machine.Ended, want *[len(trace.ReportNames)]int) {
	f := c.p.last
	switch {
	case e.Outcome == store.Committed:
		want[machine.ReportCommitted] = 1
		for i, en := range f.of.Entries {
			if en.As == machine.AsDuplicate && f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i) {
				want[machine.ReportBackstop]++
			}
		}
	case e.Outcome == store.CommitUnknown:
		want[machine.ReportUnknown] = 1
	case f.contended(e):
		want[machine.ReportContended] = 1
	}
}

// contended reports whether a batch ended because of lock contention.
func (f *flight) contended(e machine.Ended) bool {
	if f.failed {
		return f.failure.Class == store.ClassContended
	}
	return e.Class == store.ClassContended
}

// skips reports whether the policy says that a message is acked without being processed.
func (c *checker) skips(m *model.Message) bool {
	return m.Foreign && c.p.config.OnFiltered == machine.EndSkip
}

// onRefused returns how the policy ends a refused message.
func onRefused(conf machine.Config, m *model.Message) machine.Ending {
	if m.Foreign {
		return conf.OnFiltered
	}
	return conf.OnBadIdentity
}

// foreignEntry checks that no handler runs for a message that is for another consumer, and that no batch contains a
// skipped message (C16).
func (c *checker) foreignEntry(f *machine.Flight, e machine.Entry, m *model.Message) {
	switch {
	case !m.Foreign:
	case c.skips(m):
		c.broke("C16", "%s is another consumer's and to be skipped, and is in f%d", m.Name(), f.Number)
	case e.As != machine.AsParked && e.As != machine.AsDeadLettered:
		c.broke("C16", "%s is another consumer's, and is %s in f%d", m.Name(), trace.Word(trace.AsNames[:], e.As), f.Number)
	default:
		c.arose("C16")
	}
}

// skipped checks the ack of a message that is for another consumer. A message for another consumer must be counted as
// skipped. While the store is down, the message must not be acked if other work will find out that the store works
// again (law 13).
func (c *checker) skipped(s *machine.Settlement, m *model.Message, others int) {
	c.arose("C16")
	switch {
	case s.Ending != source.EndSkipped:
		c.broke("C16", "%s is another consumer's, and is settled as %s", m.Name(), s.Ending.String())
	case s.Again:
	case c.known.down && others > 0 && !c.handlerSticks():
		c.broke("law 13", "%s is another consumer's, and is settled while the store is down", m.Name())
	case c.known.down:
		c.w.coverage.Add("fault", "skipped while the store is down, and nothing else would ask")
	}
}

// handlerSticks reports whether a handler has exceeded its timeout.
func (c *checker) handlerSticks() bool {
	for _, f := range c.p.flights {
		if f.killed && f.phase == running { // the machine does not know that the handler has ended
			return true
		}
	}
	return false
}

// besideSkipped returns the number of items outside of the Settle a that will use the store: items that still need the
// store and do not wait for an ack.
func (c *checker) besideSkipped(a *machine.Settle) (n int) {
	waits := c.waitForSource(a)
	for _, h := range c.hands {
		leaving := c.stopping || !h.stale && c.lanes[h.item.Lane].revoking
		settles := c.skips(h.delivery.Message) || h.settling || h.settleFailed
		if c.alive(h) && !settles && !waits[h] && (!leaving || h.flight != nil) {
			n++
		}
	}
	return n
}

// checkSkipped checks that a message for another consumer is acked at once, unless the store is down and another item
// will use the store (C16).
func (c *checker) checkSkipped() {
	if c.over || c.stopping || c.halting() || c.p.config.OnFiltered != machine.EndSkip {
		return
	}
	var waits *itemState
	others := 0
	for _, h := range c.hands {
		switch {
		case !c.alive(h) || h.settling || h.settleFailed || c.behindCopy(h):
		case !c.skips(h.delivery.Message):
			others++
		case !c.lanes[h.item.Lane].revoking:
			waits = h
		}
	}
	switch {
	case waits == nil:
	case !c.known.down || c.p.config.OneAttempt:
		c.broke("C16", "%s is another consumer's, and is not settled at once", trace.Item(waits.item))
	case others == 0 && len(c.p.flights) == 0: // a batch uses the store even if its lane is lost
		c.broke("C16", "%s is another consumer's and waits for the store, and nothing asks for it", trace.Item(waits.item))
	default:
		c.w.coverage.Add("fault", "what is to be skipped waits for the store")
	}
}

// behindCopy reports whether a delivery that was in no batch yet waits for an earlier message of its key or lane whose
// dead letter is being written. A delivery that waits in this way does not use the store.
func (c *checker) behindCopy(h *itemState) bool {
	l, ordered := c.lineOf(h.item)
	return ordered && h.worker == 0 && !c.skips(h.delivery.Message) && slices.ContainsFunc(c.hands, func(g *itemState) bool {
		before, _ := c.lineOf(g.item)
		return g.copying && c.alive(g) && before == l && g.arrival < h.arrival
	})
}

// checkForeign checks that the store has no record of a skipped message (C16).
func (w *world) checkForeign(m *model.Message) {
	if m.Foreign && w.Plan.Config.OnFiltered == machine.EndSkip && !w.Named(m.ID) {
		_, marked := w.store.Markers[m.ID]
		if marked || w.store.Effects[m.ID] > 0 || w.store.Rows[model.RowKey{ID: m.ID}] != nil {
			w.broke("C16", "%s is another consumer's, and the store holds something of it", m.Name())
		}
	}
}
