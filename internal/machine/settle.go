package machine

import (
	"cmp"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// settleState contains the acks, nacks and dead letters that were not passed to the source yet.
type settleState struct {
	now      []Settlement // passed to the source in this step
	again    []Settlement // Settle failed for these settlements, which are passed again at until
	until    Time
	failures int // number of consecutive failures
}

// settle acks, nacks or dead-letters a delivery and counts its result, which is already committed in the store.
func (m *Machine) settle(it *Item, s Settlement) {
	m.count(it, s.Ending)
	s.Item = it
	switch {
	case it.Claim != nil: // a claimed row ends in the store and has no delivery
		m.do(Over{s})
		m.move(it, placement{})
		return
	case it.lane.left:
		m.leave(it)
		return
	}
	m.move(it, placement{state: settling})
	m.settles.now = append(m.settles.now, s)
}

// settleCopy acks a delivery as a copy of a message that has ended.
func (m *Machine) settleCopy(it *Item) {
	m.settle(it, Settlement{Kind: semel.Ack, Ending: source.EndDuplicate})
}

func (m *Machine) count(it *Item, e source.End) {
	if it.Claim != nil {
		m.counts.Claims.count(e)
		return
	}
	switch e {
	case source.EndReceived:
		m.counts.Received++
	case source.EndWaiting:
		m.counts.Waiting++
	case source.EndApplied:
		m.counts.Applied++
	case source.EndDuplicate:
		m.counts.Duplicates++
	case source.EndConflict:
		m.counts.Conflicts++
	case source.EndParked:
		m.counts.Parked++
	case source.EndDeadLettered:
		m.counts.DeadLettered++
	case source.EndDiscarded:
		m.counts.Discarded++
	case source.EndSkipped:
		m.counts.Skipped++
	}
}

// count counts how a claimed row ended.
func (c *Claims) count(e source.End) {
	switch e {
	case source.EndApplied:
		c.Applied++
	case source.EndDuplicate:
		c.Duplicates++
	case source.EndWaiting:
		c.Waiting++
	case source.EndStepped:
		c.Stepped++
	case source.EndParked:
		c.Parked++
	case source.EndDeadLettered:
		c.DeadLettered++
	case source.EndDiscarded:
		c.Discarded++
	}
}

func (m *Machine) flushSettle() {
	if len(m.settles.now) == 0 {
		return
	}
	m.do(&Settle{Items: m.settles.now})
	m.settles.now = nil
}

// handleSettled handles Settled, the response to Settle.
func (m *Machine) handleSettled(e Settled) {
	left := e.Left
	for i, s := range e.Settle.Items {
		if len(left) > 0 && left[0] == i {
			left = left[1:]
			if !m.givesUp(s) {
				s.Again = true
				m.settles.again = append(m.settles.again, s)
				continue
			}
		}
		if s.Kind == semel.DeadLetter && s.Item.state == copying {
			s.Item.copied = true // the next batch of its worker marks the message as dead-lettered
			m.requeue(s.Item)
			continue
		}
		m.leave(s.Item)
	}
	if len(e.Left) == 0 {
		if m.settles.failures > 0 {
			m.settles.failures = 0
			m.do(Report{Kind: ReportReady, Part: "broker"})
		}
		return
	}
	wait := m.jitter(m.config.BackoffFirst, m.config.BackoffMost, m.settles.failures)
	m.settles.until = m.now + wait
	m.settles.failures++
	m.do(Report{Kind: ReportNotReady, Part: "broker", Wait: wait, Err: cmp.Or(e.Err, errSettle)})
}

var errSettle = errors.New("what was committed was not settled; it is tried again")

// givesUp reports whether a failed ack, nack or dead letter is not tried again. After a lane is lost, its items cannot
// be acked. A dead letter that was not written is written when the message is delivered again.
func (m *Machine) givesUp(s Settlement) bool {
	return s.Item.lane.left || s.Kind == semel.DeadLetter && m.leaving(s.Item)
}

func (m *Machine) retrySettle() {
	if len(m.settles.again) == 0 || m.settles.until > m.now {
		return
	}
	for _, s := range m.settles.again {
		if m.givesUp(s) {
			m.leave(s.Item)
			continue
		}
		m.settles.now = append(m.settles.now, s)
	}
	m.settles.again = nil
}
