// Package faults names the points between fetch and ack at which tests stop, freeze or kill a
// process, and makes random waits repeatable. The package is for tests and for authors of stores and
// sources; a consumer in production has no Plan.
package faults

// Plan injects faults into a consumer. Pass a Plan to consumer.New.
type Plan struct {
	// At, if not nil, is called at each Point with the number of messages. At may end the process. A panic in At is
	// logged and has no other consequence.
	At func(Point, int)
	// Seed seeds the jitter of waits; 0 uses a random seed.
	Seed uint64
}

// Of merges plans. If several plans set a field, the last one wins.
func Of(plans ...Plan) Plan {
	var all Plan
	for _, p := range plans {
		if p.At != nil {
			all.At = p.At
		}
		if p.Seed != 0 {
			all.Seed = p.Seed
		}
	}
	return all
}

// Point is a place in the code at which a test can inject a fault.
type Point string

// The points between fetch and ack, in the order in which a message passes them.
const (
	AfterFetch      Point = "AfterFetch"
	AfterMark       Point = "AfterMark"
	AfterEffect     Point = "AfterEffect"
	BeforeCommit    Point = "BeforeCommit"
	CommitReplyLost Point = "CommitReplyLost"
	AfterCommit     Point = "AfterCommit"
	BeforeSettle    Point = "BeforeSettle"
	AfterSettle     Point = "AfterSettle"
)

// AfterCall is between AfterMark and AfterEffect in a consumer of consumer.NewCalling: the answer of
// the call has arrived, and no transaction is open.
const AfterCall Point = "AfterCall"

// The points at which a test can inject a fault while old markers are removed.
const (
	// BeforeAdvance is reached before the low-water marks are raised. BeforeReap is reached before each slice of
	// markers is removed, and AfterReap after each slice.
	BeforeAdvance Point = "BeforeAdvance"
	BeforeReap    Point = "BeforeReap"
	AfterReap     Point = "AfterReap"
)

// The points at which a test can inject a fault while audit records are added to the audit chain (sealing).
const (
	// BeforeSeal is reached before the search for new audit records, WithinSeal after their lines were written to the
	// chain and before the transaction commits, and AfterSeal after the commit.
	BeforeSeal Point = "BeforeSeal"
	WithinSeal Point = "WithinSeal"
	AfterSeal  Point = "AfterSeal"
)

// The points at which a test can inject a fault into a replay: before and after the replay saves its
// progress, and before and after the replay records its outcome.
const (
	BeforeProgress  Point = "BeforeProgress"
	AfterProgress   Point = "AfterProgress"
	BeforeReplayEnd Point = "BeforeReplayEnd"
	AfterReplayEnd  Point = "AfterReplayEnd"
)

// ReplayPoints returns the points of a replay, in order.
func ReplayPoints() []Point {
	return []Point{BeforeProgress, AfterProgress, BeforeReplayEnd, AfterReplayEnd}
}

// Points returns the points that a message passes, in order.
func Points() []Point {
	return []Point{AfterFetch, AfterMark, AfterEffect, BeforeCommit, CommitReplyLost, AfterCommit, BeforeSettle, AfterSettle}
}
