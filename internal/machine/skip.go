package machine

import "slices"

// skip ends an item that is not this consumer's: no flight takes it and nothing
// is written. It is settled with the next step, but not while the store is down
// (law 13), unless nothing is there that will ask whether it is back: then it
// would wait for ever, and it needs no store. Beside a handler that does not end
// that is not sure, either.
func (m *Machine) skip(it *Item) {
	it.place = queued
	m.skipped = append(m.skipped, it)
}

// settleSkipped settles what was skipped and is still there.
func (m *Machine) settleSkipped() {
	if len(m.skipped) == 0 {
		return
	}
	waits := m.store.down && m.live.count > len(m.skipped) && !m.anyStuck()
	if waits && !m.config.OneAttempt {
		return
	}
	for _, it := range m.skipped {
		s := Settlement{Kind: Ack, Ending: EndSkipped, Reason: it.Refused}
		if waits {
			wait := max(m.store.until-m.now, m.config.BackoffFirst)
			s = Settlement{Kind: HandBack, After: wait, Err: m.store.err}
		}
		m.settle(it, s)
	}
	clear(m.skipped)
	m.skipped = m.skipped[:0]
}

// unskip forgets what was skipped and has left with its lane.
func (m *Machine) unskip() {
	m.skipped = slices.DeleteFunc(m.skipped, func(it *Item) bool { return it.place != queued })
}
