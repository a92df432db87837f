package machine

import (
	"fmt"
	"time"
)

// breakerState is a circuit breaker for failures that no retry ends. After a bad
// deployment every message fails for good, and without the breaker a whole topic is
// parked within seconds. It opens after BreakerThreshold such failures in a row, unless a
// handler has succeeded since the start and HaltLater is not set: one bad producer must
// not stop a consumer that works.
//
// While it is open nothing is claimed, and nothing is fetched but what is only received;
// one message is tried at a time, after waits that grow to breakerMost. A message whose
// try fails stays what it is, until it has had as many attempts as keptFor says: then it
// ends as it would without the breaker, so that bad messages at the head of a partition
// do not hold it for ever. The first success closes the breaker.
type breakerState struct {
	open      bool
	succeeded bool // a handler has succeeded since the start
	row       int  // messages in a row that failed for good
	tries     int  // that failed while it was open
	until     Time // nothing is tried before
}

// How long the breaker waits between tries: doubling, up to a minute.
const (
	breakerFirst = time.Second
	breakerMost  = time.Minute
)

// breakerTries is how many attempts a message has at least before it ends while the
// breaker is open.
const breakerTries = 5

// PartBreaker is the part of reports that the breaker is open, or closed again.
const PartBreaker = "breaker"

// failsForGood takes that an item's handler has failed so that the item is to end. It
// reports whether the breaker keeps the item instead, to be tried again in wait.
func (m *Machine) failsForGood(it *Item, f Failure) (wait Time, kept bool) {
	b := &m.breaker
	if m.config.BreakerThreshold == 0 || m.config.OneAttempt || f.Free {
		return 0, false
	}
	b.row++
	if !b.open && (b.row < m.config.BreakerThreshold || b.succeeded && !m.config.HaltLater) {
		return 0, false
	}
	b.open = true
	if b.until <= m.now { // those that were under way beside it fail with it
		b.until = m.now + min(breakerFirst<<min(b.tries, 16), breakerMost)
		b.tries++
	}
	m.do(Report{Kind: ReportNotReady, Part: PartBreaker, Item: it, Wait: b.until - m.now, N: b.row, Err: fmt.Errorf("%d tries in a row failed for good, the last with: %w", b.row, f.Err)})
	if int(it.attempts) >= m.keptFor() {
		return 0, false
	}
	return min(b.until-m.now, m.config.MaxInMemoryWait), true
}

// keptFor is how many attempts a message has before it ends although the breaker is open.
func (m *Machine) keptFor() int { return max(m.config.MaxAttempts, breakerTries) }

// handlerWorks takes that a handler has succeeded, or has decided on purpose how its
// message ends.
func (m *Machine) handlerWorks() {
	if m.breaker.open {
		m.do(Report{Kind: ReportReady, Part: PartBreaker, N: m.breaker.row})
	}
	m.breaker = breakerState{succeeded: true}
}

// breakerHolds reports whether nothing more is to be taken, because the breaker is open
// and its next try is not due or has its message.
func (m *Machine) breakerHolds(have bool) bool {
	return m.breaker.open && (have || m.breaker.until > m.now)
}

// oneTry reports whether one message is tried at a time.
func (m *Machine) oneTry() bool { return m.trial.on || m.breaker.open }

// tryAt is when a handler may run next where one message is tried at a time.
func (m *Machine) tryAt() Time { return max(m.trial.until, m.breaker.until) }
