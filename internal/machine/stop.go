package machine

import "github.com/semel-go/semel"

// endState is how the machine comes to its end.
type endState struct {
	stopping bool
	done     bool
	idle     bool
	at       Time // the drain's deadline
	halted   *Item
	reason   semel.Reason
	err      error
}

// stop drains (case 10): no more is fetched, what has not begun is dropped,
// handlers that run may finish, what is done is committed and settled.
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

// halt ends the consumer because of a message, which stays unsettled.
func (m *Machine) halt(it *Item) {
	if m.end.halted == nil {
		why := it.failed()
		m.end.halted, m.end.reason, m.end.err = it, why.reason, why.last
	}
	if it.Claim == nil {
		m.counts.Failed++
	}
	m.leave(it)
	m.stop()
}

// finish says Done once nothing is left to do, or the deadline has passed.
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

// leaveIdle ends a consumer that has had nothing to do for IdleExit. The Fetch
// under way is cancelled first: what it has taken all the same is processed, and
// if the source has more, the consumer goes on. Without one, what was said last
// must be fresh and an answer to that question: a Fetch that was cancelled for
// another reason says only that the source works. A source that has ended, or that
// nothing is fetched from because memory is full, is not asked; without IdleExit
// only one that has an end is left so.
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
	m.do(Done{Halted: m.end.halted != nil, Item: m.end.halted, Reason: m.end.reason, Err: m.end.err, Idle: m.end.idle, Behind: m.behind(), Full: m.end.idle && m.full()})
}

// cutOff leaves what did not end within the drain: handlers are cancelled and
// their connections cut. A commit in flight is neither awaited nor settled.
func (m *Machine) cutOff() {
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && f.running {
			m.do(StopRun{Flight: f, Abort: true})
			m.do(Kill{Flight: f})
		}
	}
}
