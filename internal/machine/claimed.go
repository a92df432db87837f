package machine

import (
	"cmp"
	"slices"

	"github.com/semel-go/semel/source"
)

// InboxLane is the lane of items that were claimed. They have no order among them.
func InboxLane() source.Lane { return source.Lane{ID: "semel:inbox", Epoch: 1} }

// claimState is what the machine knows of its consumer's inbox, which it asks for
// rows that are due as it asks the source for deliveries. A claim that was not begun
// when most of its lease is over is given back: another worker may be free.
type claimState struct {
	lines  map[uint64]*line // of claims that fly alone, by route
	lane   *lane
	under  bool // a ClaimRows is under way
	wanted bool // with under: something has become due since it began
	empty  bool // the last answer was that nothing is due, and it still holds
	until  Time // it is not asked before
	// moments are when rows that this process wrote are due, the soonest of them.
	moments  []Time
	failures int
	// most is how many are claimed ahead: it grows while all are begun in time.
	most int
	// fresh are claims that may not have begun, or not again, the earliest first; freed
	// are those to be given back with this step.
	fresh []freshClaim
	freed []*Item
}

// freshClaim is a claim that is given back at a moment, if it is that claim's still.
type freshClaim struct {
	it    *Item
	until Time
}

// begunOrGone reports whether it is not to be given back, or not then.
func (f *freshClaim) begunOrGone() bool {
	return f.it.Claim.begun || f.it.state == gone || f.it.Claim.Until != f.until
}

// mayLeave lets a claim be given back at its moment.
func (c *claimState) mayLeave(it *Item) {
	it.Claim.begun = false
	i, _ := slices.BinarySearchFunc(c.fresh, it.Claim.Until, func(f freshClaim, at Time) int { return cmp.Compare(f.until, at) })
	c.fresh = slices.Insert(c.fresh, i, freshClaim{it, it.Claim.Until})
}

// mayLeaveAgain is mayLeave for the claims of a flight that has ended that are to fly
// again. Those stay of which something is known here: that their handlers need not
// run, that their commit is unknown, that they have met trouble.
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

// due says that something in the inbox is due at a moment.
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

// mostMoments bounds what is remembered; what is due later is found by asking.
const mostMoments = 64

// remember puts a moment into its place among the soonest.
func remember(moments []Time, at Time) []Time {
	i, known := slices.BinarySearch(moments, at)
	if known || i == mostMoments {
		return moments
	}
	moments = slices.Insert(moments, i, at)
	return moments[:min(len(moments), mostMoments)]
}

// forgetPassed forgets the moments that have passed: the inbox is asked now.
func (c *claimState) forgetPassed(now Time) {
	i, _ := slices.BinarySearch(c.moments, now+1)
	c.moments = slices.Delete(c.moments, 0, i)
}

// free gives a claim back whose message did not end.
func (m *Machine) free(it *Item) {
	m.counts.Claims.Released++
	m.claims.freed = append(m.claims.freed, it)
}

// loseClaim lets go of an item whose row somebody else has.
func (m *Machine) loseClaim(it *Item) {
	m.counts.Claims.Lost++
	m.do(Report{Kind: ReportClaimLost, Item: it, N: 1})
	m.move(it, placement{})
}
