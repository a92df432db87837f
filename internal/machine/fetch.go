package machine

import (
	"cmp"
	"errors"
	"time"
)

// fetchChunk is the minimum size of a Fetch, so that small batches do not cause many small calls.
const fetchChunk = 256

// emptyFetch is the pause after a Fetch without deliveries. Without a pause, a source that does not wait
// would cause a busy loop.
const emptyFetch = 5 * time.Millisecond

type fetchState struct {
	under    bool // a Fetch is running
	canceled bool
	ends     bool // if canceled is set: the run would end after this Fetch
	over     bool // the source has ended
	// If the field empty is true, the last response of the source said that there are no more deliveries. The field is
	// valid until the next Fetch is due.
	empty    bool
	began    Time // start of the last Fetch
	until    Time
	failures int
	// The field limit is the time at which the running Fetch is cancelled; 0 means no limit. The limit is set for the
	// first Fetch and after a failure, so that a source without deliveries responds and is known to work.
	limit      Time
	unanswered int  // number of Fetches in a row that ended before the source was reached
	active     Time // when a delivery last arrived, or could have arrived
	laned      bool // the source has assigned a lane
	known      bool // the source has responded without an error
	full       bool // ReportFull was made
}

// longestAsk is the maximum duration that the field limit allows for a Fetch. The allowed duration grows, because a
// source may need more time to reach its broker.
const longestAsk = time.Minute

// startFetch fetches more messages while there is free memory. The result of one Fetch may exceed the memory
// limit.
func (m *Machine) startFetch() {
	f := &m.fetch
	if f.under || f.over || m.end.stopping || f.until > m.now || m.store.closed(m.now) && !m.config.OneAttempt {
		return
	}
	messages, bytes := m.room()
	if messages <= 0 || bytes <= 0 {
		return
	}
	if m.breaker.open && !m.config.Receive { // fetch one message to try, if there is none
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

// limitFetch ends a Fetch that began after a failure. Without limitFetch, the Fetch would wait for a delivery, and it
// would stay unknown whether the source works (law 11). If the run would end at the same time, limitFetch does nothing:
// the Fetch is cancelled to end the run, and the source is asked whether it has more messages.
func (m *Machine) limitFetch() {
	if f := &m.fetch; f.under && !f.canceled && f.limit != 0 && f.limit <= m.now && !m.mayEndIdle() {
		m.cancelFetch(false)
	}
}

func (m *Machine) handleFetched(e Fetched) {
	f := &m.fetch
	f.under = false
	f.over = f.over || e.End
	f.empty = len(e.Items) == 0 && !e.More && !e.Failed && !e.Unanswered && (f.ends || !f.canceled)
	if len(e.Items) > 0 {
		m.recordArrival()
	}
	for _, it := range e.Items {
		m.admit(it)
	}
	switch {
	case e.Unanswered: // this response does not show whether the source works or is empty
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
	if e.More { // rows of the inbox may be due too, because the inbox was last asked before this response
		m.claims.until, m.claims.empty = min(m.claims.until, m.now), false
	}
	if len(e.Items) == 0 && !e.Failed {
		f.until = m.now + emptyFetch
	}
}

var errSource = errors.New("the source cannot be read")
