package machine

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// admit adds a new delivery.
func (m *Machine) admit(it *Item) {
	m.arrivals++
	m.counts.Deliveries++
	l := m.lanes[it.Lane.ID]
	if m.end.stopping || l == nil || l.name != it.Lane || l.revoking {
		return // the message is not acked, so the lane's next owner gets it
	}
	it.arrival, it.lane, it.markAs = m.arrivals, l, AsApplied
	if m.config.Receive {
		it.markAs = AsReceived
	}
	if m.config.OneAttempt && it.Before > 0 {
		it.attempts = it.Before
	}
	if r := it.Refused; r != nil {
		it.markAs, it.runAlone = AsParked, true
		it.failure = &failure{reason: r.Reason, first: r.Why, last: r.Why}
		if m.onRefused(it) == EndDeadLetter {
			it.markAs = AsDeadLettered
		}
	}
	if it.Refused != nil && m.onRefused(it) == EndSkip {
		m.skip(it)
		return
	}
	if it.Refused != nil && m.onRefused(it) == EndHalt {
		m.halt(it)
		return
	}
	m.admitCopy(it)
}

// onRefused returns how an item ends that must not run.
func (m *Machine) onRefused(it *Item) Ending {
	switch {
	case it.Refused.Foreign:
		return m.config.OnFiltered
	case it.Refused.Unversioned:
		return m.config.OnUnversioned
	}
	return m.config.OnBadIdentity
}

// skip ends an item that is not for this consumer. The item needs no batch, and nothing is written.
//
// The item is acked in the next step, unless the store is down (law 13). If the store is down, the item is acked after
// a batch has found that the store works again. If it is not certain that a batch is going to use the store, for
// example because a handler does not return, the item is acked at once, so that the item cannot wait forever.
func (m *Machine) skip(it *Item) {
	m.move(it, placement{state: skipped})
	m.skipped = append(m.skipped, it)
}

// willAsk reports whether a batch is in progress or will begin at a known time. Items in other states do not count,
// because they may wait for a long time, for example until their dead letter is written.
func (m *Machine) willAsk() bool {
	if n := &m.inState; n[inFlight]+n[held]+n[awaited] > 0 {
		return true
	}
	for i := range m.workers {
		w := &m.workers[i]
		if len(w.ready) > 0 || w.unorderedLines[ownLoose].firstItem() != nil || w.unorderedLines[ownClaims].firstItem() != nil {
			return true
		}
	}
	return false
}

// settleSkipped acks the skipped items that wait.
func (m *Machine) settleSkipped() {
	if len(m.skipped) == 0 {
		return
	}
	waits := m.store.down && m.willAsk() && !m.anyStuck()
	if waits && !m.config.OneAttempt {
		return
	}
	for _, it := range m.skipped {
		s := Settlement{Kind: semel.Ack, Ending: source.EndSkipped, Reason: it.Refused.Reason}
		if waits {
			wait := max(m.store.until-m.now, m.config.BackoffFirst)
			s = Settlement{Kind: semel.Nack, After: wait, Err: m.store.err}
		}
		m.settle(it, s)
	}
	clear(m.skipped)
	m.skipped = m.skipped[:0]
}
