package machine

import "time"

// joining is how long a source may take to give its first lane before it counts
// as empty: a member of a group waits for the others.
const joining = time.Minute

// endsIdle reports whether emptiness ends the consumer. A source that cannot be
// read is not known to be empty.
func (m *Machine) endsIdle() bool { return m.config.IdleExit > 0 && m.fetch.failures == 0 }

// idleAt is when a source that brings nothing has been empty for IdleExit.
func (m *Machine) idleAt() Time {
	if !m.fetch.laned {
		return m.fetch.active + max(m.config.IdleExit, joining)
	}
	return m.fetch.active + m.config.IdleExit
}

// endAskAt is when the Fetch under way is cancelled to end the run: one that
// begins later than that would else be cancelled before it reaches the source.
func (m *Machine) endAskAt() Time { return max(m.idleAt(), m.fetch.began+emptyFetch) }

// mayEndIdle reports whether emptiness would end the consumer now.
func (m *Machine) mayEndIdle() bool {
	return m.endsIdle() && !m.end.stopping && m.live.count == 0 && !m.flying() && m.now >= m.idleAt()
}
