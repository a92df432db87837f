package machine

import (
	"fmt"
	"time"
)

// breakerState is a circuit breaker for permanent failures. After a faulty deployment every message fails permanently.
// Without the breaker, all messages of a topic would be parked within seconds. The breaker opens after BreakerThreshold
// consecutive permanent failures. After a handler has succeeded, the breaker opens only if HaltLater is set, so that
// one faulty producer does not stop a working consumer.
//
// While the breaker is open, no row is claimed, and messages are fetched only if they are stored without a handler. The
// machine tries one message at a time, with delays that grow up to breakerMost. A message whose attempt fails waits
// until it has had keptFor attempts, and then ends as it would without the breaker, so that bad messages at the start
// of a partition do not block the partition forever. The first success closes the breaker.
type breakerState struct {
	open      bool
	succeeded bool // a handler has succeeded since the start
	row       int  // number of consecutive messages that failed permanently
	tries     int  // number of failed attempts while the breaker was open
	until     Time // time of the next attempt
}

// The delay between attempts while the breaker is open. The delay doubles with each attempt, up to a minute.
const (
	breakerFirst = time.Second
	breakerMost  = time.Minute
)

// breakerTries is the minimum number of attempts after which a message ends while the breaker is open.
const breakerTries = 5

// PartBreaker is the value of Report.Part in reports about the breaker.
const PartBreaker = "breaker"

// failsForGood records that an item's handler has failed permanently. If the open breaker lets the item wait,
// failsForGood returns true and the time after which the item is tried again.
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
	if b.until <= m.now { // other handlers that ran at the same time may also fail
		b.until = m.now + min(breakerFirst<<min(b.tries, 16), breakerMost)
		b.tries++
	}
	m.do(Report{Kind: ReportNotReady, Part: PartBreaker, Item: it, Wait: b.until - m.now, N: b.row, Err: fmt.Errorf("%d tries in a row failed for good, the last with: %w", b.row, f.Err)})
	if int(it.attempts) >= m.keptFor() {
		return 0, false
	}
	return min(b.until-m.now, m.config.MaxInMemoryWait), true
}

// keptFor returns the number of attempts after which a message ends although the breaker is open.
func (m *Machine) keptFor() int { return max(m.config.MaxAttempts, breakerTries) }

// handlerWorks records that a handler has succeeded, or has itself decided how its message ends.
func (m *Machine) handlerWorks() {
	if m.breaker.open {
		m.do(Report{Kind: ReportReady, Part: PartBreaker, N: m.breaker.row})
	}
	m.breaker = breakerState{succeeded: true}
}

// breakerHolds reports whether no further message may be taken: the breaker is open, and its next attempt is not due or
// already has a message (the parameter have).
func (m *Machine) breakerHolds(have bool) bool {
	return m.breaker.open && (have || m.breaker.until > m.now)
}

// oneTry reports whether one message is tried at a time.
func (m *Machine) oneTry() bool { return m.trial.on || m.breaker.open }

// tryAt returns the time of the next attempt while one message is tried at a time.
func (m *Machine) tryAt() Time { return max(m.trial.until, m.breaker.until) }
