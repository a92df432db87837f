package machine

import "time"

// joining is how long a source may take to assign its first lane before the source counts as idle. A source that
// is a member of a consumer group gets its lanes only after the other members have joined.
const joining = time.Minute

// awaitEnd is how long a consumer waits, after its source has ended, for messages that a newer release
// marked.
const awaitEnd = 5 * time.Second

// room returns the number of messages and bytes that may still be fetched into memory.
func (m *Machine) room() (messages int, bytes int64) {
	return m.config.MaxMessages - m.live.count, m.config.MaxBytes - m.bytes
}

// isFull reports whether nothing is fetched because memory is full.
func (m *Machine) isFull() bool {
	messages, bytes := m.room()
	return messages <= 0 || bytes <= 0
}

// endsFull reports whether the run ends because the memory is full, so that no further message can be
// fetched.
func (m *Machine) endsFull() bool { return m.isFull() && (m.config.IdleExit > 0 || m.config.Bounded) }

// rests reports whether there is nothing to do: there are no items, or only items that wait for a newer release.
func (m *Machine) rests() bool {
	return !m.flying() && (m.live.count == 0 || m.onlyAwaits())
}

// onlyAwaits reports whether the only items left are messages that a newer release marked, and items that wait for a
// marked message: later messages of the same lane, and copies. onlyAwaits is called only while no batch is in progress.
func (m *Machine) onlyAwaits() bool {
	n := &m.inState
	if n[awaited] == 0 || n[held]+n[copying]+n[skipped]+n[settling] > 0 || m.store.down || m.tryAt() > m.now {
		return false
	}
	for i := range m.workers {
		if m.workers[i].backoffUntil > m.now {
			return false
		}
	}
	return true
}

// tellFull reports when fetching stops because the memory is full of messages that a newer release marked, and of
// messages that wait for these messages. tellFull also reports when fetching continues. Fetching stops when there is
// nothing else to do, and continues when there is free memory. While the store is asked again, fetching does not
// continue.
func (m *Machine) tellFull() {
	switch {
	case m.fetch.full && !m.isFull():
		m.fetch.full = false
		m.do(Report{Kind: ReportFullEnds})
	case !m.fetch.full && m.toldNewer > 0 && m.isFull() && m.rests():
		m.fetch.full = true
		m.do(Report{Kind: ReportFull, N: m.live.count})
	}
}

// unfinishedLanes returns the lanes that still have items when an idle run ends, in order of arrival.
func (m *Machine) unfinishedLanes() []Behind {
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

// endsIdle reports whether the consumer ends when there is nothing to do. While the source fails, the consumer does not
// end, because the source may have more messages. Without IdleExit, the run ends after the last Fetch of a source that
// has an end. A run without IdleExit does not end while messages wait for a newer release, which has marked them.
func (m *Machine) endsIdle() bool {
	ends := m.config.IdleExit > 0 || (m.config.Ends || m.fetch.over) && m.onlyAwaits()
	return ends && m.fetch.failures == 0
}

// idleAt returns the time at which a source without deliveries has been idle long enough.
func (m *Machine) idleAt() Time {
	if m.config.IdleExit == 0 {
		return m.fetch.active + awaitEnd
	}
	if !m.fetch.laned {
		return m.fetch.active + max(m.config.IdleExit, joining)
	}
	return m.fetch.active + m.config.IdleExit
}

// endAskAt returns the time at which the running Fetch is cancelled to end the run. A Fetch that began later than
// idleAt gets the time emptyFetch in addition, so that it is not cancelled before it reaches the source.
func (m *Machine) endAskAt() Time { return max(m.idleAt(), m.fetch.began+emptyFetch) }

// nothingDue reports whether probably no row of the inbox is due. The result of the last claim is used until the next
// claim is due. An open breaker may delay the next claim.
func (m *Machine) nothingDue() bool {
	c := &m.claims
	return !m.config.Inbox || !c.under && (c.empty && c.until > m.now || m.isFull())
}

// mayEndIdle reports whether the consumer would end now because it is idle.
func (m *Machine) mayEndIdle() bool {
	return m.endsIdle() && !m.end.stopping && m.rests() && m.nothingDue() && m.now >= m.idleAt()
}
