package machine

import (
	"cmp"
	"slices"

	"github.com/semel-go/semel/source"
)

// InboxLane returns the lane of claimed rows, which are processed in any order.
func InboxLane() source.Lane { return source.Lane{ID: "semel:inbox", Epoch: 1} }

// claimState is the state of the claims of this process. If the handler of a claimed row has not begun when most of the
// lease has passed, the claim is released, because another process may be idle.
type claimState struct {
	lines  map[uint64]*line // queues of claimed rows that run alone, by route
	lane   *lane
	under  bool // a ClaimRows is running
	wanted bool // while under is set: a row became due after ClaimRows began
	empty  bool // no row was due at the last response, and no row became due since then
	until  Time // time of the next ClaimRows
	// moments contains, in order, the next times at which rows that this process wrote are due.
	moments  []Time
	failures int
	// prefetchLimit is the maximum number of rows that are claimed in advance. The maximum grows while all claimed
	// rows begin in time.
	prefetchLimit int
	// unstartedClaims contains the claims of rows whose handler has not begun, or may not begin again, in the order in
	// which they will be released. pendingReleases contains the claims that are released in the current step.
	unstartedClaims []unstartedClaim
	pendingReleases []*Item
}

// unstartedClaim is a claim that is released at a given time, if the item still has the claim at that time.
type unstartedClaim struct {
	it    *Item
	until Time
}

// begunOrGone reports whether the claim must not be released, or must be released at another time.
func (f *unstartedClaim) begunOrGone() bool {
	return f.it.Claim.begun || f.it.state == gone || f.it.Claim.Until != f.until
}

// mayLeave plans when a claim is released if its handler has not begun by then.
func (c *claimState) mayLeave(it *Item) {
	it.Claim.begun = false
	i, _ := slices.BinarySearchFunc(c.unstartedClaims, it.Claim.Until, func(f unstartedClaim, at Time) int { return cmp.Compare(f.until, at) })
	c.unstartedClaims = slices.Insert(c.unstartedClaims, i, unstartedClaim{it, it.Claim.Until})
}

// mayLeaveAgain calls mayLeave for the claims of an ended batch that will run again. Some claims are not released,
// because this process knows more about their rows than other processes: the handler need not run, the outcome of the
// commit is unknown, or the batch failed because of other transactions.
func (m *Machine) mayLeaveAgain(f *Flight, until Time) {
	for _, en := range f.Entries {
		it := en.Item
		if it.Claim == nil || it.state != queued || it.markAs != AsApplied || it.unknown || it.trouble != nil {
			continue
		}
		if until != 0 {
			it.Claim.Until = until
		}
		m.claims.mayLeave(it)
	}
}

// recordDue records the time at which a row of the inbox is due.
func (m *Machine) recordDue(at Time) {
	c := &m.claims
	if at <= m.now {
		c.empty, c.wanted = false, true
	} else {
		c.moments = remember(c.moments, at)
	}
	if c.failures == 0 {
		c.until = min(c.until, at)
	}
}

// mostMoments is the maximum number of remembered times at which rows are due. Rows that are due after all remembered
// times are found by the regular claims.
const mostMoments = 64

// remember inserts the time at into the sorted list moments, and returns the list.
func remember(moments []Time, at Time) []Time {
	i, known := slices.BinarySearch(moments, at)
	if known || i == mostMoments {
		return moments
	}
	moments = slices.Insert(moments, i, at)
	return moments[:min(len(moments), mostMoments)]
}

// forgetPassed removes times that have passed, because the rows that were due at these times are claimed now.
func (c *claimState) forgetPassed(now Time) {
	i, _ := slices.BinarySearch(c.moments, now+1)
	c.moments = slices.Delete(c.moments, 0, i)
}

// free releases the claim of a message that did not end.
func (m *Machine) free(it *Item) {
	m.counts.Claims.Released++
	m.claims.pendingReleases = append(m.claims.pendingReleases, it)
}

// loseClaim drops an item because another process has claimed its row, or an operator has changed its row.
func (m *Machine) loseClaim(it *Item) {
	m.counts.Claims.Lost++
	m.do(Report{Kind: ReportClaimLost, Item: it, N: 1})
	m.move(it, placement{})
}
