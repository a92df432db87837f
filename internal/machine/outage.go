package machine

import "github.com/semel-go/semel"

// downState is the state of a store that is down (law 13). One flight at a time tests whether the store works again.
// Meanwhile no other flight begins, and no message that would have to wait is fetched. Which result of the test counts
// depends on how the store failed:
//
//   - If the store could not open a transaction, it counts as working when the flight's transaction has opened. The
//     other flights do not wait for the flight's handler, which may take long.
//   - If the store opened transactions and failed to commit them, for example because its disk was full, it counts as
//     working when a transaction has committed. Until then another flight tests the store after each delay.
type downState struct {
	down  bool
	asks  *Flight // finds out whether the store works, until its transaction has opened
	asked *Flight // the last such flight whose transaction opened
	full  bool    // the store failed after a transaction had opened
	until Time
	tries int
	err   error // the last error, for people
}

// closed reports whether no flight may begin.
func (s *downState) closed(now Time) bool { return s.down && (s.asks != nil || s.until > now) }

// opened records that a transaction has opened.
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

// goDown records that a flight found the store down. Of several flights that find it at the same time only the
// first is reported, and later each flight that asked.
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

// answerDown returns messages that would wait for a store that is down, if nothing waits (case 12): one flight
// finds out whether the store works, and the others do not wait for it. Their broker keeps the messages, so they
// are fetched anyway.
func (m *Machine) answerDown() {
	s := &m.store
	if !m.config.OneAttempt || m.end.stopping || !s.closed(m.now) {
		return
	}
	for i := range m.workers {
		for _, q := range m.workers[i].own { // if nothing waits, there is no order
			for it := q.first(); it != nil; it = q.first() {
				wait := s.until - m.now
				if wait <= 0 { // a flight is asking
					wait = m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
				}
				m.handBackAll(it, Settlement{Kind: semel.Nack, After: wait, Err: s.err})
			}
		}
	}
}

// standDown keeps the items of a flight until the store works, or returns them if nothing waits. opened reports
// that the flight's transaction had opened.
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

// handBackAll returns an item together with its riders; otherwise each of them would only carry the others to the
// same end.
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
