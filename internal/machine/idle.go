package machine

import "time"

// joining is how long a source may take to give its first lane before it counts
// as empty: a member of a group waits for the others.
const joining = time.Minute

// awaitEnd is how long a consumer whose source has ended waits for what a newer
// release knows.
const awaitEnd = 5 * time.Second

// room is how much more may be held in memory.
func (m *Machine) room() (messages int, bytes int64) {
	return m.config.MaxMessages - m.live.count, m.config.MaxBytes - m.bytes
}

// full reports whether nothing is fetched, because of what is held in memory.
func (m *Machine) full() bool {
	messages, bytes := m.room()
	return messages <= 0 || bytes <= 0
}

// endsFull reports whether the run ends because nothing more can be fetched.
func (m *Machine) endsFull() bool { return m.full() && (m.config.IdleExit > 0 || m.config.Bounded) }

// rests reports whether nothing is to be done: nothing is there, or only what
// this release cannot end.
func (m *Machine) rests() bool {
	return !m.flying() && (m.live.count == 0 || m.onlyAwaits())
}

// onlyAwaits reports, where nothing flies, whether all that is left are messages
// that a newer release marked, and what waits for them: behind them in their
// lanes, or as their copies. What is queued and could run would fly.
func (m *Machine) onlyAwaits() bool {
	n := &m.inState
	if n[awaited] == 0 || n[held]+n[copying]+n[skipped]+n[settling] > 0 || m.store.down || m.tryAt() > m.now {
		return false
	}
	for i := range m.workers {
		if m.workers[i].until > m.now {
			return false
		}
	}
	return true
}

// tellFull says when fetching stands still because of what a newer release marked
// and what waits for it, and when it goes on. It begins when nothing else is to be
// done, and lasts, also while the store is asked again, until there is room.
func (m *Machine) tellFull() {
	switch {
	case m.fetch.full && !m.full():
		m.fetch.full = false
		m.do(Report{Kind: ReportFullEnds})
	case !m.fetch.full && m.toldNewer > 0 && m.full() && m.rests():
		m.fetch.full = true
		m.do(Report{Kind: ReportFull, N: m.live.count})
	}
}

// behind are the lanes of which something is left when the run ends idle, in
// order of arrival.
func (m *Machine) behind() []Behind {
	if !m.end.idle {
		return nil
	}
	var all []Behind
	at := map[*lane]int{}
	for it := m.live.head; it != nil; it = it.next {
		i, known := at[it.lane]
		if !known {
			i = len(all)
			at[it.lane] = i
			all = append(all, Behind{Lane: it.lane.name})
		}
		b := &all[i]
		b.Messages++
		if b.Item == nil && it.state == awaited {
			b.Item, b.Why = it, it.trouble.unknown
		}
	}
	return all
}

// endsIdle reports whether emptiness ends the consumer. A source that cannot be
// read is not known to be empty. Without IdleExit a source that has ended says so
// with its last Fetch, but not while something of it is awaited.
func (m *Machine) endsIdle() bool {
	ends := m.config.IdleExit > 0 || (m.config.Ends || m.fetch.over) && m.onlyAwaits()
	return ends && m.fetch.failures == 0
}

// idleAt is when a source that brings nothing has been empty for long enough.
func (m *Machine) idleAt() Time {
	if m.config.IdleExit == 0 {
		return m.fetch.active + awaitEnd
	}
	if !m.fetch.laned {
		return m.fetch.active + max(m.config.IdleExit, joining)
	}
	return m.fetch.active + m.config.IdleExit
}

// endAskAt is when the Fetch under way is cancelled to end the run: one that
// begins later than that would else be cancelled before it reaches the source.
func (m *Machine) endAskAt() Time { return max(m.idleAt(), m.fetch.began+emptyFetch) }

// nothingDue reports whether the inbox has nothing to do now, as far as is known. What it
// said last holds until it is to be asked again: an open breaker may keep the machine from
// asking for longer.
func (m *Machine) nothingDue() bool {
	c := &m.claims
	return !m.config.Inbox || !c.under && (c.empty && c.until > m.now || m.full())
}

// mayEndIdle reports whether emptiness would end the consumer now.
func (m *Machine) mayEndIdle() bool {
	return m.endsIdle() && !m.end.stopping && m.rests() && m.nothingDue() && m.now >= m.idleAt()
}
