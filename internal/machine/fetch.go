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
	over     bool // the source has ended
	until    Time
	failures int
	active   Time // when something was last there, or could have been
	laned    bool // the source has given a lane
}

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
	f.under, f.canceled = true, false
	m.do(Fetch{Messages: min(messages, max(m.config.Most, fetchChunk)), Bytes: bytes})
}

func (m *Machine) fetched(e Fetched) {
	f := &m.fetch
	f.under = false
	f.over = f.over || e.End
	for _, it := range e.Items {
		m.admit(it)
	}
	switch {
	case e.Failed:
		wait := m.jitter(m.config.BackoffFirst, m.config.BackoffMost, f.failures)
		f.failures++
		f.until = m.now + wait
		m.do(Report{Kind: ReportNotReady, Reason: "source", Wait: wait, Err: cmp.Or(e.Err, errSource)})
	case f.failures > 0:
		f.failures, f.active = 0, m.now
		m.do(Report{Kind: ReportReady, Reason: "source"})
	}
	if len(e.Items) > 0 {
		f.active = m.now
	} else if !e.Failed {
		f.until = m.now + emptyFetch
	}
}

var errSource = errors.New("the source cannot be read")

// downState is a store that cannot work now (law 13): nothing begins but one
// flight at a time that asks whether it is back, and nothing is fetched that
// would have to wait. It is
// back when it commits: a full disk opens transactions and takes none.
type downState struct {
	down    bool
	probing bool
	until   Time
	tries   int
	err     error // why it went down last, for people
}

// mayBegin reports whether a flight may start.
func (s *downState) mayBegin(now Time) bool { return !s.closed(now) }

func (s *downState) closed(now Time) bool { return s.down && (s.probing || s.until > now) }

func (m *Machine) goDown(err error) {
	s := &m.store
	if s.down && s.until > m.now {
		return
	}
	wait := m.jitter(m.config.BackoffFirst, m.config.BackoffMost, s.tries)
	s.down, s.tries, s.until = true, s.tries+1, m.now+wait
	s.err = err
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
				m.uncarry(it)
				m.settle(it, Settlement{Kind: HandBack, After: wait, Err: s.err})
			}
		}
	}
}
