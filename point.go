package semel

// Point names a step between fetch and settle. Config.At is called at each, so
// that tests can stop, freeze or kill a process there.
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

// Points returns all points in order.
func Points() []Point {
	return []Point{AfterFetch, AfterMark, AfterEffect, BeforeCommit, CommitReplyLost, AfterCommit, BeforeSettle, AfterSettle}
}
