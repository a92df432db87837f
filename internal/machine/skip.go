package machine

// skip ends an item that is not this consumer's: no flight takes it and nothing
// is written. It is settled with the next step, but not while the store is down
// (law 13), unless nothing is there that will ask whether it is back: then it
// would wait for ever, and it needs no store.
func (m *Machine) skip(it *Item) {
	it.place = queued
	m.skipped = append(m.skipped, it)
}

// settleSkipped settles what was skipped and is still there.
func (m *Machine) settleSkipped() {
	waits := m.store.down && m.live.count > len(m.skipped)
	if waits && !m.config.OneAttempt {
		return
	}
	for _, it := range m.skipped {
		if it.place != queued { // its lane was left meanwhile
			continue
		}
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
