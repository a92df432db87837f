// Package faults names the steps between fetch and settle, at which tests stop,
// freeze or kill a process, and fixes what is random. It is for tests, and for
// authors of stores and sources; a consumer in production has no Plan.
package faults

// Plan is what a test asks of a consumer. Give it to consumer.New.
type Plan struct {
	// At, when set, is called at each Point with the number of messages there. It
	// may end the process; a panic is logged, and nothing else comes of it.
	At func(Point, int)
	// Seed is of the jitter of waits; 0 takes a random one.
	Seed uint64
}

// Of joins plans: of two that set a field, the later one counts.
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

// Point names a step between fetch and settle.
type Point string

// The points, in the order a message passes them.
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

// AfterCall is the point of consumer.NewCalling between AfterMark and AfterEffect: the
// answer of a call is here, and no transaction is open.
const AfterCall Point = "AfterCall"

// The points of a reaper, each once a slice.
const (
	// BeforeAdvance: the low-water marks are about to be raised. BeforeReap: they are,
	// and a slice is about to be removed. AfterReap: it is.
	BeforeAdvance Point = "BeforeAdvance"
	BeforeReap    Point = "BeforeReap"
	AfterReap     Point = "AfterReap"
)

// The points of sealing acts.
const (
	// BeforeSeal: there is perhaps something to seal. WithinSeal: lines are written, and their
	// transaction is open. AfterSeal: it is committed.
	BeforeSeal Point = "BeforeSeal"
	WithinSeal Point = "WithinSeal"
	AfterSeal  Point = "AfterSeal"
)

// The points of who runs a replay: its progress is about to be kept, and is; its end is about
// to be written down, and is.
const (
	BeforeProgress  Point = "BeforeProgress"
	AfterProgress   Point = "AfterProgress"
	BeforeReplayEnd Point = "BeforeReplayEnd"
	AfterReplayEnd  Point = "AfterReplayEnd"
)

// ReplayPoints returns the points of who runs a replay, in order.
func ReplayPoints() []Point {
	return []Point{BeforeProgress, AfterProgress, BeforeReplayEnd, AfterReplayEnd}
}

// Points returns the points that a message passes, in order.
func Points() []Point {
	return []Point{AfterFetch, AfterMark, AfterEffect, BeforeCommit, CommitReplyLost, AfterCommit, BeforeSettle, AfterSettle}
}
