// Package laneoffset defines the consumer offsets that Semel's own stores keep in order to detect that a database
// was restored from a backup.
package laneoffset

import "context"

// LaneOffset is the consumer's offset in a lane, such as a partition of a topic.
type LaneOffset struct {
	// Lane is a permanent name. A topic that was deleted and created again has other lanes.
	Lane string
	// Offset is the offset of the first message that is not settled, or None.
	Offset int64
}

// None means that no offset is known.
const None = -1

// Advance raises the offset of a lane.
type Advance struct {
	LaneOffset
	// Least is the offset that must be stored already, because it was written before; None if
	// none is required.
	Least int64
}

// Store is implemented by a store that keeps the offsets of consumers, by lane, in the database
// of the effects. A source writes an offset there before it commits the offset to the broker. A
// database that was restored from a backup, or failed over to a server without its last commits, is
// recognised because its offsets are behind those of the broker.
type Store interface {
	// Offsets returns the offsets of these lanes, in their order.
	Offsets(ctx context.Context, consumer string, lanes []string) ([]LaneOffset, error)
	// AdvanceOffsets raises all offsets or none, and returns the offsets before, in order.
	// AdvanceOffsets does not lower an offset that is already higher. If an offset is below its
	// Least, or missing, nothing is written, and the caller recognises the lane in the returned
	// offsets (see Lacks). Each lane may be named once. After an error either nothing or
	// everything is written.
	AdvanceOffsets(ctx context.Context, consumer string, to []Advance) (before []LaneOffset, err error)
}

// Lacks reports whether the offset before was below Least.
func (a Advance) Lacks(before LaneOffset) bool { return before.Offset < a.Least }
