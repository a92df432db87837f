package machine

import (
	"cmp"
	"errors"
	"time"
)

// fetchChunk is the least a Fetch asks for, so that small batches do not make
// many small calls.
const fetchChunk = 256

// emptyFetch is the pause after a Fetch that brought nothing: a source that
// does not wait must not make the consumer spin.
const emptyFetch = 5 * time.Millisecond

type fetchState struct {
	under    bool // a Fetch is under way
	canceled bool
	ends     bool // with canceled: the run would end for it
	over     bool // the source has ended
	// empty: the last answer was that nothing is there, and the source was asked
	// whether it has more. It is known until the next Fetch is due.
	empty    bool
	began    Time // of the last Fetch
	until    Time
	failures int
	// limit, at first and after a failure, is when the Fetch under way is
	// cancelled, so that a quiet source answers whether it works; 0: it may wait.
	limit      Time
	unanswered int  // in a row: Fetches that ended before the source could be asked
	active     Time // when something was last there, or could have been
	laned      bool // the source has given a lane
	known      bool // the source has answered without an error
}

// longestAsk is the most that a Fetch after a failure may wait. The limit grows
// up to there: a source may need longer to find its broker than it was given.
const longestAsk = time.Minute

// joining is how long a source may take to give its first lane before it counts
// as empty: a member of a group waits for the others.
const joining = time.Minute

// endsIdle reports whether emptiness ends the consumer. A source that cannot be
// read is not known to be empty.
func (m *Machine) endsIdle() bool { return m.config.IdleExit > 0 && m.fetch.failures == 0 }

// idleAt is when a source that brings nothing has been empty for IdleExit.
func (m *Machine) idleAt() Time {
	if !m.fetch.laned {
		return m.fetch.active + max(m.config.IdleExit, joining)
	}
	return m.fetch.active + m.config.IdleExit
}

// endAskAt is when the Fetch under way is cancelled to end the run: one that
// begins later than that would else be cancelled before it reaches the source.
func (m *Machine) endAskAt() Time { return max(m.idleAt(), m.fetch.began+emptyFetch) }

// mayEndIdle reports whether emptiness would end the consumer now.
func (m *Machine) mayEndIdle() bool {
	return m.endsIdle() && !m.end.stopping && m.live.count == 0 && !m.flying() && m.now >= m.idleAt()
}

// startFetch asks for more while there is room; it may overshoot by one call.
func (m *Machine) startFetch() {
	f := &m.fetch
	if f.under || f.over || m.end.stopping || f.until > m.now || m.store.closed(m.now) && !m.config.OneAttempt {
		return
	}
	messages := m.config.MaxMessages - m.live.count
	bytes := m.config.MaxBytes - m.bytes
	if messages <= 0 || bytes <= 0 {
		return
	}
	f.under, f.canceled, f.ends, f.empty, f.limit, f.began = true, false, false, false, 0, m.now
	switch {
	case f.failures > 0:
		f.limit = m.now + min(max(m.config.BackoffMost<<min(f.unanswered, 16), time.Millisecond), longestAsk)
	case !f.known:
		f.limit = m.now + joining
	}
	m.do(Fetch{Messages: min(messages, max(m.config.Most, fetchChunk)), Bytes: bytes})
}

// limitFetch lets a source that has failed answer: the next Fetch would else
// wait for a delivery, and nobody would know whether it works (law 11). Where the
// run would end in the same moment, it is cancelled for that: the source is asked
// for more then.
func (m *Machine) limitFetch() {
	if f := &m.fetch; f.under && !f.canceled && f.limit != 0 && f.limit <= m.now && !m.mayEndIdle() {
		m.cancelFetch(false)
	}
}

// cancelFetch ends the Fetch under way; idle says that the run would end for it.
// A stop takes that back: the source need not say any more whether it has more.
func (m *Machine) cancelFetch(idle bool) {
	f := &m.fetch
	if !f.under || f.canceled && (idle || !f.ends) {
		return
	}
	f.canceled, f.ends = true, idle
	m.do(CancelFetch{Idle: idle})
}

func (m *Machine) fetched(e Fetched) {
	f := &m.fetch
	f.under = false
	f.over = f.over || e.End
	f.empty = len(e.Items) == 0 && !e.More && !e.Failed && !e.Unanswered && (f.ends || !f.canceled)
	for _, it := range e.Items {
		m.admit(it)
	}
	switch {
	case e.Unanswered: // neither known to work nor to be empty
		f.unanswered++
		f.active = m.now
	case e.Failed:
		f.unanswered = 0
		wait := m.jitter(m.config.BackoffFirst, m.config.BackoffMost, f.failures)
		f.failures++
		f.until = m.now + wait
		m.do(Report{Kind: ReportNotReady, Reason: "source", Wait: wait, Err: cmp.Or(e.Err, errSource)})
	case f.failures > 0:
		f.failures, f.unanswered, f.active = 0, 0, m.now
		m.do(Report{Kind: ReportReady, Reason: "source"})
	}
	f.known = f.known || !e.Failed && !e.Unanswered
	if len(e.Items) > 0 || e.More {
		f.active = m.now
	}
	if len(e.Items) == 0 && !e.Failed {
		f.until = m.now + emptyFetch
	}
}

var errSource = errors.New("the source cannot be read")

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

// mayBegin reports whether a flight may start.
func (s *downState) mayBegin(now Time) bool { return !s.closed(now) }

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
	m.do(Report{Kind: ReportNotReady, Reason: "store", Wait: wait, Err: err})
}

func (m *Machine) up() {
	if m.store.down {
		m.store = downState{}
		m.do(Report{Kind: ReportReady, Reason: "store"})
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
		for _, l := range m.workers[i].lines {
			for it := l.first(); it != nil; it = l.first() {
				l.pop()
				wait := s.until - m.now
				if wait <= 0 { // it is being asked
					wait = m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
				}
				m.handBackAll(it, Settlement{Kind: HandBack, After: wait, Err: s.err})
			}
		}
	}
}
