package simulator

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// checkSettle checks a Settle action (acks, nacks and dead letters).
func (c *checker) checkSettle(a *machine.Settle) {
	if len(a.Items) == 0 {
		c.broke("protocol", "a Settle of nothing")
	}
	others := c.besideSkipped(a)
	for i := range a.Items {
		s := &a.Items[i]
		h := handOf(s.Item)
		m := h.delivery.Message
		c.prove(h)
		switch {
		case h.settling || h.settled:
			c.broke("law 9", "%s is settled twice", m.Name())
		case h.flight != nil:
			c.broke("law 2", "%s is settled while f%d is open", m.Name(), h.flight.Number)
		case h.stale:
			c.broke("protocol", "%s is settled after its lane was gone", m.Name())
		case s.Again != h.settleFailed:
			c.broke("protocol", "%s is settled with again: %v, and should be with %v", m.Name(), s.Again, h.settleFailed)
		case s.Kind == semel.Nack:
			c.handedBack(s)
			c.checkHandBack(s, h)
		case s.Kind == semel.DeadLetter:
			c.checkDeadLetter(s, h)
		case s.Ending == source.EndUnknown:
			c.broke("protocol", "%s is acknowledged without an end", m.Name())
		case c.skips(m):
			c.skipped(s, m, others)
		default:
			c.inItsStore(h, func() {
				c.evidence(s, h)
				c.ending(s, h)
			})
			c.knownToActive(h)
		}
		h.settling, h.copying = true, s.Kind == semel.DeadLetter
		if !s.Again {
			c.count(s.Ending)
			c.inItsStore(h, func() { c.countedOnRow(s) })
		}
	}
}

// checkHandBack checks that a nacked delivery has not ended.
func (c *checker) checkHandBack(s *machine.Settlement, h *itemState) {
	lane := c.lanes[s.Item.Lane]
	switch {
	case s.Ending != source.EndUnknown:
		c.broke("protocol", "%s is handed back with an end", h.delivery.Message.Name())
	case !c.p.config.OneAttempt && !c.stopping && !lane.revoking && c.p.config.Lanes != machine.NoOrder:
		c.broke("law 8", "%s is handed back though its lane goes on", h.delivery.Message.Name())
	}
}

// checkDeadLetter checks a message that becomes a dead letter: the policy must allow that, and the message must not
// have ended yet.
func (c *checker) checkDeadLetter(s *machine.Settlement, h *itemState) {
	m := h.delivery.Message
	switch {
	case s.Ending != source.EndUnknown || h.copied:
		c.broke("protocol", "%s is copied to the dead letters after its end", m.Name())
	case !s.Again && s.Attempts != h.attempts:
		c.checkAttempts(h, s.Attempts)
	case !c.mayDeadLetter(m) && !(h.endsAsOld() && h.requiredOutcome == machine.AsDeadLettered):
		c.broke("law 4", "%s (%s) is copied to the dead letters", m.Name(), trace.Word(model.ConductNames[:], m.Conduct))
	}
}

// countedOnRow checks that a duplicate of a message is counted on the row of the message, if it has a row (case 8).
// After a commit with an unknown outcome, the machine cannot know whether the duplicate is counted on the row.
func (c *checker) countedOnRow(s *machine.Settlement) {
	id := identityOf(s.Item)
	m, marked := c.w.store.Marked(handOf(s.Item).delivery.Message)
	if s.Ending != source.EndDuplicate || !marked || c.w.store.Passed[id] {
		return
	}
	key := model.RowKey{ID: id}
	if model.Conflicts(m.Print, s.Item.Print) {
		key = model.RowKey{ID: id, Conflict: true, Print: s.Item.Print}
	}
	r := c.w.store.Rows[key]
	if handOf(s.Item).handled { // the duplicate is counted in the delivery's own marker
		if r != nil {
			r.Doubted++
		}
		return
	}
	if !key.Conflict && m.Outcome == store.Applied && (!c.p.config.Keep || r == nil) {
		if r != nil { // when the duplicate was counted, the row was still waiting
			r.Settled++
		}
		return
	}
	if r == nil && c.w.store.WasRemoved(id) {
		return
	}
	if r == nil {
		c.broke("law 10", "%s is settled as a duplicate, and has no row", id)
		return
	}
	c.arose("case 8")
	if r.Settled++; r.Settled > r.Repeats+c.w.store.Lost[key] {
		c.broke("case 8", "the row of %s counts %d copies, and %d are settled", id, r.Repeats, r.Settled)
	}
}

func (c *checker) count(e source.End) {
	switch e {
	case source.EndApplied:
		c.counts.Applied++
	case source.EndDuplicate:
		c.counts.Duplicates++
	case source.EndConflict:
		c.counts.Conflicts++
	case source.EndParked:
		c.counts.Parked++
	case source.EndDeadLettered:
		c.counts.DeadLettered++
	case source.EndDiscarded:
		c.counts.Discarded++
	case source.EndSkipped:
		c.counts.Skipped++
	case source.EndReceived:
		c.counts.Received++
	case source.EndWaiting:
		c.counts.Waiting++
	}
}

// evidence checks that the store contains the outcome that a settlement reports (law 2), and that the message may end
// with this outcome.
func (c *checker) evidence(s *machine.Settlement, h *itemState) {
	m := h.delivery.Message
	c.arose("law 2")
	if s.Ending == source.EndDuplicate {
		c.arose("law 9")
	}
	if c.unknownHere(s.Item) {
		c.broke("P1", "%s is settled as %s, and only a newer release knows what became of it", m.Name(), s.Ending.String())
	}
	if s.Ending == source.EndDuplicate && c.othersContent(s.Item) {
		c.broke("law 10", "%s is settled as a duplicate, and its identity has another content", m.Name())
	}
	forgotten := s.Again && c.w.store.WasRemoved(identityOf(s.Item)) // the broker has the settlement already, but its response was lost
	if !forgotten && !c.proven(s, h) {
		c.broke("law 2", "%s is settled as %s, and the store does not hold it", m.Name(), s.Ending.String())
	}
	if s.Ending == source.EndDuplicate && h.applied {
		c.broke("case 3", "%s is settled as a duplicate of itself", m.Name())
	}
	if why := c.wrongEnd(s.Ending, h); why != "" {
		c.broke(why, "%s (%s) ends as %s", m.Name(), trace.Word(model.ConductNames[:], m.Conduct), s.Ending.String())
	}
}

// othersContent reports whether the store has the identity of an item only with other content.
func (c *checker) othersContent(i *machine.Item) bool {
	m, marked := c.w.store.Marked(handOf(i).delivery.Message)
	return !c.p.config.Unmarked && marked && !c.w.store.Passed[identityOf(i)] && !c.w.store.WasRemoved(identityOf(i)) && model.Conflicts(m.Print, i.Print) && c.w.store.Rows[model.RowKey{ID: identityOf(i), Conflict: true, Print: i.Print}] == nil
}

func (c *checker) proven(s *machine.Settlement, h *itemState) bool {
	st, id := c.w.store, identityOf(s.Item)
	marker, marked := st.Marked(h.delivery.Message)
	parted := marked && model.Conflicts(marker.Print, s.Item.Print)
	if st.Passed[id] {
		return st.RowWith(id, s.Item.Print)
	}
	switch s.Ending {
	case source.EndApplied:
		if c.p.config.Unmarked {
			return h.handled && st.Effects[id] > 0
		}
		return marked && !parted && marker.Outcome == store.Applied
	case source.EndDuplicate:
		// A copy of a conflict is counted on the row of the conflict. The row of a conflict may be removed between the
		// marker and the commit.
		key := model.RowKey{ID: id, Conflict: true, Print: s.Item.Print}
		return marked && !parted || st.Rows[key] != nil || st.GoneRows[key] || c.p.config.Unmarked && h.delivery.Message.Conduct == model.SaysDuplicate
	case source.EndConflict:
		row := st.Rows[model.RowKey{ID: id, Conflict: true, Print: s.Item.Print}]
		if row != nil && row.As == machine.AsDeadLettered && !c.copied(s.Item) {
			return false
		}
		return parted && (row != nil || c.p.config.OnConflict == machine.EndKeepFirst)
	case source.EndDeadLettered:
		return marked && !parted && st.Rows[model.RowKey{ID: id}] != nil && c.copied(s.Item)
	case source.EndReceived, source.EndWaiting:
		return marked && !parted && (h.doubt || st.Rows[model.RowKey{ID: id}] != nil)
	case source.EndParked, source.EndDiscarded:
		return marked && !parted && st.Rows[model.RowKey{ID: id}] != nil
	}
	return false
}

// copied reports whether the topic for dead letters contains the item.
func (c *checker) copied(i *machine.Item) bool {
	m := handOf(i).delivery.Message
	return c.w.Source.Dead[model.Content{ID: m.ID, Print: m.Print}] > 0
}

// wrongEnd returns the law that an end breaks, or "" if the end breaks no law.
func (c *checker) wrongEnd(e source.End, h *itemState) string {
	m := h.delivery.Message
	if h.requiredOutcome != 0 && ends[h.requiredOutcome] == e {
		return ""
	}
	switch e {
	case source.EndApplied:
		if m.Times > model.Always/2 || m.Refused != "" {
			return "law 12"
		}
	case source.EndReceived:
		if !c.p.config.Receive || h.claim != nil {
			return "law 12"
		}
	case source.EndWaiting:
		if h.claim == nil && !c.p.config.Wait {
			return "case 6"
		}
		if m.Harmless && m.Charged == 0 {
			return "law 7"
		}
	case source.EndParked:
		if h.item.Refused != nil && h.claim != nil {
			return ""
		}
		if m.Harmless && m.Refused == "" && m.Charged == 0 {
			return "law 7"
		}
		if !c.mayEnd(m, machine.EndPark) && !(h.claim != nil && c.mayDeadLetter(m)) {
			return "law 4"
		}
	case source.EndDeadLettered:
		if !c.mayDeadLetter(m) {
			return "law 4"
		}
	case source.EndDiscarded:
		if m.Conduct != model.AsksDiscard && !(m.Conduct == model.FindsUnmet && c.p.config.OnPrecondition == machine.EndDiscard) {
			return "law 4"
		}
	}
	return ""
}

// mayDeadLetter reports whether the policy allows a message to be dead-lettered, because of the result of its handler
// or as a conflict.
func (c *checker) mayDeadLetter(m *model.Message) bool {
	return c.mayEnd(m, machine.EndDeadLetter) || c.p.config.OnConflict == machine.EndDeadLetter && c.w.HasOtherContent(m)
}

// mayEnd reports whether the policy allows the given ending for the message.
func (c *checker) mayEnd(m *model.Message, then machine.Ending) bool {
	conf := c.p.config
	blamed := m.Failed + m.Charged
	if m.LooksInnocent() {
		blamed = m.Charged
	}
	exhausted := blamed >= 1
	if !c.w.Plan.Queue && !c.w.Plan.Whole {
		exhausted = blamed >= conf.MaxAttempts
	}
	exhausted = exhausted && conf.OnExhausted == then
	switch {
	case m.Charged > 0 && exhausted:
		return true
	case m.Doubted && (then == machine.EndPark || exhausted):
		return true
	case m.Refused != "":
		return onRefused(conf, m) == then
	case m.Conduct == model.AsksPark:
		return then == machine.EndPark
	case m.Conduct == model.AsksTooLong:
		return then == machine.EndPark && !conf.Wait || exhausted
	case m.Clashed && conf.OnExhausted == then:
		return true
	case m.Conduct == model.FailsForGood || m.Conduct == model.UnknownType || m.Conduct == model.FailsAtCommit || m.Conduct == model.Sticks || m.Conduct == model.BreaksQuietly:
		return conf.OnExhausted == then && m.Failed >= 1
	case m.Conduct == model.FindsUnmet:
		return conf.OnPrecondition == then || conf.OnPrecondition == machine.EndRetry && exhausted
	case m.Conduct == model.FailsRetryable || m.Conduct == model.FailsWithWait:
		return exhausted
	}
	return false
}

// allowed checks that the marker of an entry has an outcome that is allowed for its message.
func (c *checker) allowed(as machine.As, h *itemState) {
	m := h.delivery.Message
	if h.mustTry && h.requiredOutcome == 0 && (as == machine.AsParked || as == machine.AsDeadLettered) {
		c.broke("C19", "%s is to end as %s, and the breaker was open when it failed", m.Name(), trace.Word(trace.AsNames[:], as))
	}
	switch as {
	case machine.AsApplied:
		if c.p.config.Receive && h.claim == nil {
			c.broke("D2", "%s is to run before it is received", m.Name())
		}
		if h.waitsInInbox {
			c.broke("case 6", "%s has waited in memory for longer than it may", m.Name())
		}
	case machine.AsReceived:
		c.arose("D2")
		if why := c.wrongEnd(source.EndReceived, h); why != "" {
			c.broke(why, "%s is to be received", m.Name())
		}
	case machine.AsWaiting, machine.AsBlocked:
		if why := c.wrongEnd(source.EndWaiting, h); why != "" {
			c.broke(why, "%s (%s) is to wait in the inbox", m.Name(), trace.Word(model.ConductNames[:], m.Conduct))
		}
	case machine.AsDuplicate:
		if m.Conduct != model.SaysDuplicate {
			c.broke("law 12", "%s is marked as applied without its handler", m.Name())
		}
	case machine.AsParked, machine.AsOverdue:
		if why := c.wrongEnd(source.EndParked, h); why != "" {
			c.broke(why, "%s (%s) is to be parked", m.Name(), trace.Word(model.ConductNames[:], m.Conduct))
		}
	case machine.AsDeadLettered:
		if !h.copied {
			c.broke("law 2", "%s is marked as dead-lettered, and no copy is known", m.Name())
		}
		if why := c.wrongEnd(source.EndDeadLettered, h); why != "" {
			c.broke(why, "%s (%s) is to be dead-lettered", m.Name(), trace.Word(model.ConductNames[:], m.Conduct))
		}
	case machine.AsDiscarded:
		if why := c.wrongEnd(source.EndDiscarded, h); why != "" {
			c.broke(why, "%s (%s) is to be discarded", m.Name(), trace.Word(model.ConductNames[:], m.Conduct))
		}
	}
}

// halted checks that a message may halt the machine.
func (c *checker) halted(m *model.Message) {
	conf := c.p.config
	conflict := conf.OnConflict == machine.EndHalt && c.w.HasOtherContent(m)
	refused := onRefused(conf, m) == machine.EndHalt && m.Refused != ""
	failed := conf.OnExhausted == machine.EndHalt && m.Failed+m.Charged > 0
	if !conflict && !refused && !failed {
		c.broke("law 7", "%s (%s) halts the machine", m.Name(), trace.Word(model.ConductNames[:], m.Conduct))
	}
}
