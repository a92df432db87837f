package machine

import "github.com/semel-go/semel"

// downState is a store that cannot work now (law 13): nothing begins but one
// flight at a time that asks whether it is back, and nothing is fetched that
// would have to wait. The question is answered when that flight's transaction
// has opened: its handler may take its time, and nobody waits for it. A store
// that opened transactions and took none, such as one with a full disk, is back
// when it commits; until then the next worker asks after a further wait.
type downState struct {
	down  bool
	asks  *Flight // asks whether it is back, until its transaction has opened
	asked *Flight // asked last, and its transaction opened
	full  bool    // it failed after a transaction had opened
	until Time
	tries int
	err   error // why it went down last, for people
}

// closed reports whether no flight may begin.
func (s *downState) closed(now Time) bool { return s.down && (s.asks != nil || s.until > now) }

// opened takes that a transaction has opened.
func (m *Machine) opened(f *Flight) {
	s := &m.store
	switch {
	case !s.down:
	case !s.full:
		m.up()
	case s.asks == f:
		s.asks, s.asked = nil, f
		s.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
		s.tries++
	}
}

// goDown takes that a flight met a store that cannot work. opened says that its
// transaction had opened. Of those that meet it together the first is told, and
// later each that asked.
func (m *Machine) goDown(f *Flight, err error, opened bool) {
	s := &m.store
	s.full = s.full || opened
	wait := s.until - m.now
	switch {
	case !s.down || wait <= 0:
		wait = m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
		s.down, s.tries, s.until = true, s.tries+1, m.now+wait
	case s.asked != f:
		return
	}
	s.err, s.asked = err, nil
	m.do(Report{Kind: ReportNotReady, Part: "store", Wait: wait, Err: err})
}

func (m *Machine) up() {
	if m.store.down {
		m.store = downState{}
		m.do(Report{Kind: ReportReady, Part: "store"})
	}
}

// answerDown hands back what would wait for a store that is down, where nothing
// waits (case 12): one flight asks whether it is back, the others are not held
// up for it. Their broker keeps them, so they are fetched all the same.
func (m *Machine) answerDown() {
	s := &m.store
	if !m.config.OneAttempt || m.end.stopping || !s.closed(m.now) {
		return
	}
	for i := range m.workers {
		for _, q := range m.workers[i].own { // what nothing waits for has no order
			for it := q.first(); it != nil; it = q.first() {
				wait := s.until - m.now
				if wait <= 0 { // it is being asked
					wait = m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
				}
				m.handBackAll(it, Settlement{Kind: semel.Nack, After: wait, Err: s.err})
			}
		}
	}
}

// standDown keeps a flight for when the store is back, or hands it back where
// nothing waits. opened says that its transaction had opened.
func (m *Machine) standDown(f *Flight, err error, opened bool) {
	m.goDown(f, err, opened)
	if !m.config.OneAttempt {
		m.requeueAll(f)
		return
	}
	for _, en := range f.Entries {
		m.uncarry(en.Item)
		m.settle(en.Item, Settlement{Kind: semel.Nack, After: m.store.until - m.now, Err: err})
	}
}

// handBackAll hands an item back with all that rides on it: each of them would
// only carry the others to the same end.
func (m *Machine) handBackAll(it *Item, s Settlement) {
	riders := m.unload(it)
	m.settle(it, s)
	for _, r := range riders {
		r.counted = false
		if m.leaving(r) {
			m.leave(r)
			continue
		}
		m.settle(r, s)
	}
}
