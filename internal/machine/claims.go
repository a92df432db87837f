package machine

import (
	"cmp"
	"errors"
	"slices"
)

// startClaim claims due rows if few claimed rows are left to process.
func (m *Machine) startClaim() {
	c := &m.claims
	if !m.config.Inbox || c.under || m.end.stopping || c.until > m.now || m.store.closed(m.now) || c.lane.items > c.prefetchLimit/2 {
		return
	}
	if m.config.OneWriter && m.oneFlies() {
		return // the claim would wait in the store for the running batch
	}
	messages, bytes := m.room()
	if messages <= 0 || bytes <= 0 || m.oneTry() && c.lane.items > 0 || m.breakerHolds(false) {
		return
	}
	if m.oneTry() { // while one message is tried at a time, claim at most one row
		messages = 1
	}
	c.under, c.wanted = true, false
	c.forgetPassed(m.now)
	m.do(ClaimRows{Messages: min(messages, c.prefetchLimit-c.lane.items), Bytes: bytes})
}

// handleClaimed handles the response to ClaimRows.
func (m *Machine) handleClaimed(e Claimed) {
	c := &m.claims
	c.under = false
	if len(e.Items) > 0 {
		m.recordArrival()
	}
	for _, it := range e.Items {
		m.admitClaim(it)
	}
	switch {
	case e.Later > 0: // this response does not show whether the inbox works or is empty
		c.until, c.empty = m.now+e.Later, false
		return
	case e.Failed:
		wait := m.jitter(m.config.BackoffFirst, m.config.BackoffMost, c.failures)
		c.failures++
		c.until, c.empty = m.now+wait, false
		m.do(Report{Kind: ReportNotReady, Part: "inbox", Wait: wait, Err: cmp.Or(e.Err, errInbox)})
		return
	case c.failures > 0:
		c.failures = 0
		m.do(Report{Kind: ReportReady, Part: "inbox"})
	}
	c.until, c.empty = m.now, false
	if len(e.Items) == 0 && !c.wanted {
		// The time has a random part, so that many processes do not claim at the same time.
		c.until, c.empty = m.now+m.config.Poll/2+m.jitter(m.config.Poll/2, m.config.Poll/2, 0), true
		if len(c.moments) > 0 {
			c.until = min(c.until, max(c.moments[0], m.now))
		}
	}
}

var errInbox = errors.New("the inbox cannot be read")

// admitClaim adds a claimed row.
func (m *Machine) admitClaim(it *Item) {
	c := it.Claim
	m.arrivals++
	m.counts.Claims.Claimed++
	it.arrival, it.lane, it.markAs = m.arrivals, m.claims.lane, AsApplied
	it.attempts, it.runAlone = int32(c.Attempts), c.Suspect
	if c.Suspect {
		m.counts.Claims.Reclaimed++
	}
	if r := it.Refused; r != nil {
		it.markAs = AsParked
		it.failure = &failure{reason: r.Reason, first: r.Why, last: r.Why}
	}
	if m.end.stopping {
		m.free(it)
		return
	}
	m.claims.mayLeave(it)
	m.enqueue(it)
}

// freeLate releases claims of rows that did not begin in time.
func (m *Machine) freeLate() {
	c := &m.claims
	late := false
	for n := range c.unstartedClaims {
		switch fresh := &c.unstartedClaims[n]; {
		case fresh.begunOrGone():
		case fresh.until > m.now:
			c.trim(n)
			return
		default:
			if !late { // only once, even if several claims are late
				late, c.prefetchLimit = true, max(1, c.prefetchLimit/2)
			}
			m.leave(fresh.it)
		}
	}
	if len(c.unstartedClaims) > 0 && !late { // all claimed rows began in time
		c.prefetchLimit = min(c.prefetchLimit*2, max(m.claimsAFlight()*m.config.Workers, fetchChunk))
	}
	c.trim(len(c.unstartedClaims))
}

// claimsAFlight returns the maximum number of claimed rows in a batch.
func (m *Machine) claimsAFlight() int {
	if m.config.ClaimsAlone {
		return 1
	}
	return m.config.Most
}

// trim removes the first n elements of unstartedClaims.
func (c *claimState) trim(n int) {
	clear(c.unstartedClaims[:n])
	if c.unstartedClaims = c.unstartedClaims[n:]; len(c.unstartedClaims) == 0 {
		c.unstartedClaims = nil
	}
}

// unclaim releases the claims in pendingReleases.
func (m *Machine) unclaim() {
	if len(m.claims.pendingReleases) > 0 {
		a := Unclaim{Items: m.claims.pendingReleases}
		if slices.Contains(a.Items, m.end.halted) {
			a.Halted, a.Err = m.end.halted, m.end.err
		}
		m.do(a)
		m.claims.pendingReleases, m.claims.empty, m.claims.wanted = nil, false, true // the released rows are due
	}
}
