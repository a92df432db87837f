package simulator

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// settle checks what the broker is told.
func (c *checker) settle(a *machine.Settle) {
	if len(a.Items) == 0 {
		c.broke("protocol", "a Settle of nothing")
	}
	others := c.besideSkipped(a)
	for i := range a.Items {
		s := &a.Items[i]
		h := handOf(s.Item)
		m := h.delivery.message
		c.prove(h)
		switch {
		case h.asked || h.told:
			c.broke("law 9", "%s is settled twice", m.name())
		case h.flight != nil:
			c.broke("law 2", "%s is settled while f%d is open", m.name(), h.flight.Number)
		case h.stale:
			c.broke("protocol", "%s is settled after its lane was gone", m.name())
		case s.Again != h.left:
			c.broke("protocol", "%s is settled with again: %v, and should be with %v", m.name(), s.Again, h.left)
		case s.Kind == semel.Nack:
			c.handedBack(s)
			c.handBack(s, h)
		case s.Kind == semel.DeadLetter:
			c.deadLetter(s, h)
		case s.Ending == source.EndUnknown:
			c.broke("protocol", "%s is acknowledged without an end", m.name())
		case c.skips(m):
			c.skipped(s, m, others)
		default:
			c.inItsStore(h, func() {
				c.evidence(s, h)
				c.ending(s, h)
			})
			c.knownToActive(h)
		}
		h.asked, h.copying = true, s.Kind == semel.DeadLetter
		if !s.Again {
			h.ending = s.Ending
			c.count(s.Ending)
			c.inItsStore(h, func() { c.countedOnRow(s) })
		}
	}
}

// handBack checks that what is handed back has not ended.
func (c *checker) handBack(s *machine.Settlement, h *handed) {
	lane := c.lanes[s.Item.Lane]
	switch {
	case s.Ending != source.EndUnknown:
		c.broke("protocol", "%s is handed back with an end", h.delivery.message.name())
	case !c.p.config.OneAttempt && !c.stopping && !lane.revoking && c.p.config.Lanes != machine.NoOrder:
		c.broke("law 8", "%s is handed back though its lane goes on", h.delivery.message.name())
	}
}

// deadLetter checks that what is copied to the dead letters may end there, and
// has not ended.
func (c *checker) deadLetter(s *machine.Settlement, h *handed) {
	m := h.delivery.message
	switch {
	case s.Ending != source.EndUnknown || h.copied:
		c.broke("protocol", "%s is copied to the dead letters after its end", m.name())
	case !s.Again && s.Attempts != h.attempts:
		c.charged(h, s.Attempts)
	case !c.mayDeadLetter(m) && !(h.endsAsOld() && h.must == machine.AsDeadLettered):
		c.broke("law 4", "%s (%s) is copied to the dead letters", m.name(), word(conductNames[:], m.conduct))
	}
}

// countedOnRow checks that a copy of what was set aside is counted on its row
// (case 8). After a commit of unknown outcome the machine cannot know whether
// the copy is counted, once or not at all.
func (c *checker) countedOnRow(s *machine.Settlement) {
	id := identity(s.Item)
	m, marked := c.w.store.marked(handOf(s.Item).delivery.message)
	if s.Ending != source.EndDuplicate || !marked || c.w.store.passed[id] {
		return
	}
	key := rowKey{id: id}
	if conflicts(m.print, s.Item.Print) {
		key = rowKey{id, true, s.Item.Print}
	}
	r := c.w.store.rows[key]
	if handOf(s.Item).handled { // its own mark says so
		if r != nil {
			r.doubted++
		}
		return
	}
	if !key.conflict && m.outcome == store.Applied && (!c.p.config.Keep || r == nil) {
		if r != nil { // it waited when the copy was counted, or was
			r.settled++
		}
		return
	}
	if r == nil && c.w.store.wasRemoved(id) {
		return
	}
	if r == nil {
		c.broke("law 10", "%s is settled as a duplicate, and has no row", id)
		return
	}
	c.arose("case 8")
	if r.settled++; r.settled > r.repeats+c.w.store.lost[key] {
		c.broke("case 8", "the row of %s counts %d copies, and %d are settled", id, r.repeats, r.settled)
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

// evidence checks that the store holds what the settlement says (law 2), and
// that the message may end so.
func (c *checker) evidence(s *machine.Settlement, h *handed) {
	m := h.delivery.message
	c.arose("law 2")
	if s.Ending == source.EndDuplicate {
		c.arose("law 9")
	}
	if c.unknownHere(s.Item) {
		c.broke("P1", "%s is settled as %s, and only a newer release knows what became of it", m.name(), s.Ending.String())
	}
	if s.Ending == source.EndDuplicate && c.othersContent(s.Item) {
		c.broke("law 10", "%s is settled as a duplicate, and its identity has another content", m.name())
	}
	forgotten := s.Again && c.w.store.wasRemoved(identity(s.Item)) // the broker has it, and its answer was lost
	if !forgotten && !c.proven(s, h) {
		c.broke("law 2", "%s is settled as %s, and the store does not hold it", m.name(), s.Ending.String())
	}
	if s.Ending == source.EndDuplicate && h.applied {
		c.broke("case 3", "%s is settled as a duplicate of itself", m.name())
	}
	if why := c.wrongEnd(s.Ending, h); why != "" {
		c.broke(why, "%s (%s) ends as %s", m.name(), word(conductNames[:], m.conduct), s.Ending.String())
	}
}

// othersContent reports whether the store has the item's identity with another
// content only.
func (c *checker) othersContent(i *machine.Item) bool {
	m, marked := c.w.store.marked(handOf(i).delivery.message)
	return !c.p.config.Unmarked && marked && !c.w.store.passed[identity(i)] && !c.w.store.wasRemoved(identity(i)) && conflicts(m.print, i.Print) && c.w.store.rows[rowKey{identity(i), true, i.Print}] == nil
}

func (c *checker) proven(s *machine.Settlement, h *handed) bool {
	st, id := c.w.store, identity(s.Item)
	marker, marked := st.marked(h.delivery.message)
	parted := marked && conflicts(marker.print, s.Item.Print)
	if st.passed[id] {
		return st.rowWith(id, s.Item.Print)
	}
	switch s.Ending {
	case source.EndApplied:
		if c.p.config.Unmarked {
			return h.handled && st.effects[id] > 0
		}
		return marked && !parted && marker.outcome == store.Applied
	case source.EndDuplicate:
		// A copy of a conflict is counted on the conflict's row, which may be removed
		// between its mark and its commit.
		key := rowKey{id, true, s.Item.Print}
		return marked && !parted || st.rows[key] != nil || st.goneRows[key] || c.p.config.Unmarked && h.delivery.message.conduct == saysDuplicate
	case source.EndConflict:
		row := st.rows[rowKey{id, true, s.Item.Print}]
		if row != nil && row.as == machine.AsDeadLettered && !c.copied(s.Item) {
			return false
		}
		return parted && (row != nil || c.p.config.OnConflict == machine.EndKeepFirst)
	case source.EndDeadLettered:
		return marked && !parted && st.rows[rowKey{id: id}] != nil && c.copied(s.Item)
	case source.EndReceived, source.EndWaiting:
		return marked && !parted && (h.doubt || st.rows[rowKey{id: id}] != nil)
	case source.EndParked, source.EndDiscarded:
		return marked && !parted && st.rows[rowKey{id: id}] != nil
	}
	return false
}

// copied reports whether the dead letters hold what the item says.
func (c *checker) copied(i *machine.Item) bool {
	m := handOf(i).delivery.message
	return c.w.source.dead[content{m.id, m.print}] > 0
}

// wrongEnd names the law that an end breaks, or nothing.
func (c *checker) wrongEnd(e source.End, h *handed) string {
	m := h.delivery.message
	if h.must != 0 && ends[h.must] == e {
		return ""
	}
	switch e {
	case source.EndApplied:
		if m.times > always/2 || m.refused != "" {
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
		if m.harmless && m.charged == 0 {
			return "law 7"
		}
	case source.EndParked:
		if h.item.Refused != nil && h.claim != nil {
			return ""
		}
		if m.harmless && m.refused == "" && m.charged == 0 {
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
		if m.conduct != asksDiscard && !(m.conduct == findsUnmet && c.p.config.OnPrecondition == machine.EndDiscard) {
			return "law 4"
		}
	}
	return ""
}

// mayDeadLetter reports whether the policy dead-letters a message that behaves
// so, or another content of a known identity.
func (c *checker) mayDeadLetter(m *message) bool {
	return c.mayEnd(m, machine.EndDeadLetter) || c.p.config.OnConflict == machine.EndDeadLetter && c.w.hasOtherContent(m)
}

// mayEnd reports whether the policy ends a message that behaves so like that.
func (c *checker) mayEnd(m *message, then machine.Ending) bool {
	conf := c.p.config
	blamed := m.failed + m.charged
	if m.looksInnocent() {
		blamed = m.charged
	}
	exhausted := blamed >= 1
	if !c.w.plan.queue && !c.w.plan.whole {
		exhausted = blamed >= conf.MaxAttempts
	}
	exhausted = exhausted && conf.OnExhausted == then
	switch {
	case m.charged > 0 && exhausted:
		return true
	case m.doubted && (then == machine.EndPark || exhausted):
		return true
	case m.refused != "":
		return onRefused(conf, m) == then
	case m.conduct == asksPark:
		return then == machine.EndPark
	case m.conduct == asksTooLong:
		return then == machine.EndPark && !conf.Wait || exhausted
	case m.clashed && conf.OnExhausted == then:
		return true
	case m.conduct == failsForGood || m.conduct == unknownType || m.conduct == failsAtCommit || m.conduct == sticks || m.conduct == breaksQuietly:
		return conf.OnExhausted == then && m.failed >= 1
	case m.conduct == findsUnmet:
		return conf.OnPrecondition == then || conf.OnPrecondition == machine.EndRetry && exhausted
	case m.conduct == failsRetryable || m.conduct == failsWithWait:
		return exhausted
	}
	return false
}

// allowed checks that an entry is marked as its message asked for.
func (c *checker) allowed(as machine.As, h *handed) {
	m := h.delivery.message
	if h.mustTry && h.must == 0 && (as == machine.AsParked || as == machine.AsDeadLettered) {
		c.broke("C19", "%s is to end as %s, and the breaker was open when it failed", m.name(), word(asNames[:], as))
	}
	switch as {
	case machine.AsApplied:
		if c.p.config.Receive && h.claim == nil {
			c.broke("D2", "%s is to run before it is received", m.name())
		}
		if h.waitsInInbox {
			c.broke("case 6", "%s has waited in memory for longer than it may", m.name())
		}
	case machine.AsReceived:
		c.arose("D2")
		if why := c.wrongEnd(source.EndReceived, h); why != "" {
			c.broke(why, "%s is to be received", m.name())
		}
	case machine.AsWaiting, machine.AsBlocked:
		if why := c.wrongEnd(source.EndWaiting, h); why != "" {
			c.broke(why, "%s (%s) is to wait in the inbox", m.name(), word(conductNames[:], m.conduct))
		}
	case machine.AsDuplicate:
		if m.conduct != saysDuplicate {
			c.broke("law 12", "%s is marked as applied without its handler", m.name())
		}
	case machine.AsParked, machine.AsOverdue:
		if why := c.wrongEnd(source.EndParked, h); why != "" {
			c.broke(why, "%s (%s) is to be parked", m.name(), word(conductNames[:], m.conduct))
		}
	case machine.AsDeadLettered:
		if !h.copied {
			c.broke("law 2", "%s is marked as dead-lettered, and no copy is known", m.name())
		}
		if why := c.wrongEnd(source.EndDeadLettered, h); why != "" {
			c.broke(why, "%s (%s) is to be dead-lettered", m.name(), word(conductNames[:], m.conduct))
		}
	case machine.AsDiscarded:
		if why := c.wrongEnd(source.EndDiscarded, h); why != "" {
			c.broke(why, "%s (%s) is to be discarded", m.name(), word(conductNames[:], m.conduct))
		}
	}
}

// halted checks that a message may halt the machine.
func (c *checker) halted(m *message) {
	conf := c.p.config
	conflict := conf.OnConflict == machine.EndHalt && c.w.hasOtherContent(m)
	refused := onRefused(conf, m) == machine.EndHalt && m.refused != ""
	failed := conf.OnExhausted == machine.EndHalt && m.failed+m.charged > 0
	if !conflict && !refused && !failed {
		c.broke("law 7", "%s (%s) halts the machine", m.name(), word(conductNames[:], m.conduct))
	}
}

func (w *world) hasOtherContent(m *message) bool {
	for _, o := range w.messages {
		if (o.id == m.id || m.former != "" && o.former == m.former) && !o.foreign && o.print != m.print {
			return true
		}
	}
	return false
}
