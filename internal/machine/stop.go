package machine

import "github.com/semel-go/semel"

// endState describes the end of the run.
type endState struct {
	stopping bool
	done     bool
	idle     bool
	at       Time // deadline of the drain
	halted   *Item
	reason   semel.Reason
	err      error
}

// stop drains (case 10): no further message is fetched, and items that are not in a batch are dropped.
// Running handlers may finish, and their messages are committed and acked.
func (m *Machine) stop() {
	if m.end.stopping {
		return
	}
	m.end.stopping = true
	m.end.at = m.now + m.config.Drain
	m.cancelFetch(false)
	m.dropIdle(func(*Item) bool { return true })
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil {
			m.stopRun(f)
		}
	}
}

// halt ends the consumer because of a message. The message is not acked.
func (m *Machine) halt(it *Item) {
	if m.end.halted == nil {
		why := it.failureOrZero()
		m.end.halted, m.end.reason, m.end.err = it, why.reason, why.last
	}
	if it.Claim == nil {
		m.counts.Failed++
	}
	m.leave(it)
	m.stop()
}

// finish sends Done when there is nothing left to do, or when the deadline has passed.
func (m *Machine) finish() {
	if m.end.done {
		return
	}
	empty := m.live.count == 0 && !m.flying()
	switch {
	case m.end.stopping && empty && !m.fetch.under && !m.claims.under:
		m.done()
	case m.end.stopping && m.now >= m.end.at:
		m.cutOff()
		m.done()
	case m.end.stopping:
	case empty && m.fetch.over && !m.fetch.under && m.nothingDue():
		m.end.idle = true
		m.done()
	case m.mayEndIdle():
		m.leaveIdle()
	}
}

// leaveIdle ends a consumer that has had nothing to do for IdleExit. First leaveIdle cancels the running
// Fetch. If that Fetch returns deliveries, they are processed. If the source has more messages, the consumer
// continues. If no Fetch is running, the last response must be recent and must have said that the source has
// no more messages. A Fetch that was cancelled for another reason does not show that. The source is not asked
// if it has ended, or if nothing is fetched because memory is full. Without IdleExit, full memory counts only
// if the source has an end.
func (m *Machine) leaveIdle() {
	f := &m.fetch
	switch {
	case f.under && m.now >= m.endAskAt():
		m.cancelFetch(true)
	case !f.under && (f.over || m.endsFull() || f.empty && m.now <= f.until):
		m.end.idle = true
		m.done()
	}
}

func (m *Machine) done() {
	m.end.done = true
	m.do(Done{Halted: m.end.halted != nil, Item: m.end.halted, Reason: m.end.reason, Err: m.end.err, Idle: m.end.idle, Behind: m.unfinishedLanes(), Full: m.end.idle && m.isFull()})
}

// cutOff cancels handlers that did not end within the drain, and closes their connections. A running commit
// is not awaited, and its messages are not acked.
func (m *Machine) cutOff() {
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && f.running {
			m.do(StopRun{Flight: f, Abort: true})
			m.do(Kill{Flight: f})
		}
	}
}
