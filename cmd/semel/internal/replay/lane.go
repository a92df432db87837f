package replay

import (
	"cmp"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

type outcome uint8

const (
	// The outcome open means that the message has not ended.
	open outcome = iota
	applied
	skipped
	conflict
	received
	waiting
	parked
	deadLettered
	discarded
	foreign
	tooOld
	timeless
	// The outcome outside means that the message does not belong to the replay.
	outside
	// The outcome unknown means that a preview cannot predict the outcome.
	unknown
)

// outcomeOf returns the outcome with which a delivery was acked or nacked.
func outcomeOf(e source.End) outcome {
	switch e {
	case source.EndApplied:
		return applied
	case source.EndDuplicate:
		return skipped
	case source.EndConflict:
		return conflict
	case source.EndReceived:
		return received
	case source.EndWaiting, source.EndStepped:
		return waiting
	case source.EndParked:
		return parked
	case source.EndDeadLettered:
		return deadLettered
	case source.EndDiscarded:
		return discarded
	case source.EndSkipped:
		return foreign
	}
	return open
}

// count adds the outcome of a message to the counts.
func count(c *admin.ReplayCounts, e outcome) {
	if e == outside {
		return
	}
	c.Read++
	counted := map[outcome]*int64{
		applied: &c.Applied, skipped: &c.Skipped, conflict: &c.Conflicts, received: &c.Received, waiting: &c.Waiting, parked: &c.Parked,
		deadLettered: &c.DeadLettered, discarded: &c.Discarded, foreign: &c.Foreign, tooOld: &c.TooOld, timeless: &c.Timeless, unknown: &c.Unknown,
	}
	*counted[e]++
}

// lane is a lane of a replay. underWay has the lane's messages in order, starting with the first message
// that has not ended.
type lane struct {
	admin.ReplayLane
	underWay []place
}

type place struct {
	offset  int64
	outcome outcome
}

// begin adds a message to the lane. If the message was added before or has ended, begin returns false.
func (l *lane) begin(offset int64) bool {
	last := l.After
	if n := len(l.underWay); n > 0 {
		last = l.underWay[n-1].offset
	}
	if offset <= last {
		return false
	}
	l.underWay = append(l.underWay, place{offset: offset})
	return true
}

// end records the outcome of a message. end then counts all messages before the first message that has not
// ended.
func (l *lane) end(offset int64, e outcome, c *admin.ReplayCounts) {
	i, found := slices.BinarySearchFunc(l.underWay, offset, func(p place, offset int64) int { return cmp.Compare(p.offset, offset) })
	if !found || l.underWay[i].outcome != open {
		return
	}
	l.underWay[i].outcome = e
	for len(l.underWay) > 0 && l.underWay[0].outcome != open {
		count(c, l.underWay[0].outcome)
		l.After = l.underWay[0].offset
		l.underWay = l.underWay[1:]
	}
}
