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
	full       bool // it is told that what a newer release marked leaves no room
}

// longestAsk is the most that a Fetch after a failure may wait. The limit grows
// up to there: a source may need longer to find its broker than it was given.
const longestAsk = time.Minute

// startFetch asks for more while there is room; it may overshoot by one call.
func (m *Machine) startFetch() {
	f := &m.fetch
	if f.under || f.over || m.end.stopping || f.until > m.now || m.store.closed(m.now) && !m.config.OneAttempt {
		return
	}
	messages, bytes := m.room()
	if messages <= 0 || bytes <= 0 {
		return
	}
	if m.breaker.open && !m.config.Receive { // one to be tried, if there is none
		if m.breakerHolds(!m.rests()) {
			return
		}
		messages = 1
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

func (m *Machine) fetched(e Fetched) {
	f := &m.fetch
	f.under = false
	f.over = f.over || e.End
	f.empty = len(e.Items) == 0 && !e.More && !e.Failed && !e.Unanswered && (f.ends || !f.canceled)
	if len(e.Items) > 0 {
		m.came()
	}
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
		m.do(Report{Kind: ReportNotReady, Part: "source", Wait: wait, Err: cmp.Or(e.Err, errSource)})
	case f.failures > 0:
		f.failures, f.unanswered, f.active = 0, 0, m.now
		m.do(Report{Kind: ReportReady, Part: "source"})
	}
	f.known = f.known || !e.Failed && !e.Unanswered
	if len(e.Items) > 0 || e.More {
		f.active = m.now
	}
	if e.More { // that may be in the inbox, too: what is known of it is older than the answer
		m.claims.until, m.claims.empty = min(m.claims.until, m.now), false
	}
	if len(e.Items) == 0 && !e.Failed {
		f.until = m.now + emptyFetch
	}
}

var errSource = errors.New("the source cannot be read")
