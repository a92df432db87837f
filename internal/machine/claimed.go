package machine

import (
	"cmp"
	"slices"

	"github.com/semel-go/semel/source"
)

// InboxLane returns the lane of claimed items. They have no order.
func InboxLane() source.Lane { return source.Lane{ID: "semel:inbox", Epoch: 1} }

// claimState is the state of claiming rows of the consumer's inbox. A claim that has not begun when most of its
// lease has passed is released, because another worker may be free.
type claimState struct {
	lines  map[uint64]*line // lines of claims that fly alone, by route
	lane   *lane
	under  bool // a ClaimRows is in progress
	wanted bool // with under: a row became due after it began
	empty  bool // no row was due at the last response, and none became due since
	until  Time // time of the next ClaimRows
	// moments are the next times at which rows written by this process are due, in order.
	moments  []Time
	failures int
	// most is the maximum number of claims in advance. most grows while all claims begin in
	// time.
	most int
	// fresh are claims that may not have begun yet, or not again, in order of release time. freed are the claims
	// to be released in this step.
	fresh []freshClaim
	freed []*Item
}

// freshClaim is a claim to be released at a time, if the item still has the same claim then.
type freshClaim struct {
	it    *Item
	until Time
}

// begunOrGone reports whether the claim must not be released, or not at that time.
func (f *freshClaim) begunOrGone() bool {
	return f.it.Claim.begun || f.it.state == gone || f.it.Claim.Until != f.until
}

// mayLeave schedules the release of a claim.
func (c *claimState) mayLeave(it *Item) {
	it.Claim.begun = false
	i, _ := slices.BinarySearchFunc(c.fresh, it.Claim.Until, func(f freshClaim, at Time) int { return cmp.Compare(f.until, at) })
	c.fresh = slices.Insert(c.fresh, i, freshClaim{it, it.Claim.Until})
}

// mayLeaveAgain calls mayLeave for the claims of an ended flight that will run again. Claims are kept if this
// process knows something about them: their handler need not run, the outcome of their commit is unknown, or they
// failed because of others.
func (m *Machine) mayLeaveAgain(f *Flight, until Time) {
	for _, en := range f.Entries {
		it := en.Item
		if it.Claim == nil || it.state != queued || it.as != AsApplied || it.unknown || it.trouble != nil {
			continue
		}
		if until != 0 {
			it.Claim.Until = until
		}
		m.claims.mayLeave(it)
	}
}

// due records that a row of the inbox is due at a time.
func (m *Machine) due(at Time) {
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

// mostMoments is the maximum number of times to remember; later rows are found by claiming.
const mostMoments = 64

// remember inserts a time in order.
func remember(moments []Time, at Time) []Time {
	i, known := slices.BinarySearch(moments, at)
	if known || i == mostMoments {
		return moments
	}
	moments = slices.Insert(moments, i, at)
	return moments[:min(len(moments), mostMoments)]
}

// forgetPassed removes times that have passed, because rows are claimed now.
func (c *claimState) forgetPassed(now Time) {
	i, _ := slices.BinarySearch(c.moments, now+1)
	c.moments = slices.Delete(c.moments, 0, i)
}

// free releases a claim whose message did not end.
func (m *Machine) free(it *Item) {
	m.counts.Claims.Released++
	m.claims.freed = append(m.claims.freed, it)
}

// loseClaim drops an item whose row another worker or an operator has.
func (m *Machine) loseClaim(it *Item) {
	m.counts.Claims.Lost++
	m.do(Report{Kind: ReportClaimLost, Item: it, N: 1})
	m.move(it, placement{})
}
