package machine

import "github.com/semel-go/semel"

// downState is the state while the store is down (law 13). While the store is down, one batch at a time tests whether
// the store works again. No other batch begins, and no message is fetched that would have to wait. When the store
// counts as working again depends on how it failed:
//
//   - If the store could not open a transaction, it works again when the test batch has opened its transaction.
//     The other batches do not wait for the handler of the test batch, which may take long.
//   - If the store opened transactions but failed to commit them, for example because its disk was full, it
//     works again when a transaction has committed. Until then another batch tests the store after each delay.
type downState struct {
	down  bool
	asks  *Flight // the batch that tests the store, until its transaction has opened
	asked *Flight // the last test batch whose transaction opened
	full  bool    // the store failed after a transaction had opened
	until Time
	tries int
	err   error // the last error
}

// closed reports whether no batch may begin because the store is down.
func (s *downState) closed(now Time) bool { return s.down && (s.asks != nil || s.until > now) }

// recordBegun records that a transaction has opened.
func (m *Machine) recordBegun(f *Flight) {
	s := &m.store
	switch {
	case !s.down:
	case !s.full:
		m.endOutage()
	case s.asks == f:
		s.asks, s.asked = nil, f
		s.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
		s.tries++
	}
}

// goDown records that the store was down for a batch. If the store was down for several batches at the same time, only
// the first batch is reported. Later, each test batch that fails is reported.
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

func (m *Machine) endOutage() {
	if m.store.down {
		m.store = downState{}
		m.do(Report{Kind: ReportReady, Part: "store"})
	}
}

// answerDown returns messages that would have to wait for a store that is down, if the consumer never waits (case 12).
// A single batch tests whether the store works, and other messages do not wait for the test. Messages that are returned
// stay in their broker.
func (m *Machine) answerDown() {
	s := &m.store
	if !m.config.OneAttempt || m.end.stopping || !s.closed(m.now) {
		return
	}
	for i := range m.workers {
		for _, q := range m.workers[i].unorderedLines { // if the consumer never waits, messages have no order
			for it := q.firstItem(); it != nil; it = q.firstItem() {
				wait := s.until - m.now
				if wait <= 0 { // a batch is testing the store
					wait = m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
				}
				m.handBackAll(it, Settlement{Kind: semel.Nack, After: wait, Err: s.err})
			}
		}
	}
}

// standDown keeps the items of a batch in memory until the store works. If the consumer never waits, standDown returns
// the items to the caller of Process. The parameter opened means that the batch's transaction had opened.
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

// handBackAll returns an item together with its waiting copies, because each copy would become the first copy in turn
// and end in the same way.
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
