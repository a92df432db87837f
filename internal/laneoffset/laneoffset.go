// Package laneoffset defines the consumer offsets that Semel's own stores keep. With these offsets Semel
// detects that a database was restored from a backup.
package laneoffset

import "context"

// LaneOffset is the consumer's offset in a lane, such as a partition of a topic.
type LaneOffset struct {
	// Lane is the permanent name of the lane. If a topic was deleted and created again, its lanes have other
	// names.
	Lane string
	// Offset is the offset of the first message that is not acked, or None.
	Offset int64
}

// The constant None means that no offset is known.
const None = -1

// Advance is a request to raise the stored offset of a lane.
type Advance struct {
	LaneOffset
	// Least is an offset that was written before. If the stored offset is lower than Least, the database has lost
	// writes. If Least is None, no earlier offset is expected.
	Least int64
}

// Store is implemented by a store that keeps the offsets of consumers, by lane, in the database of the
// effects. A source writes an offset to this database before it commits the offset to the broker. If the
// database was restored from a backup, or failed over to a server without its last commits, its offsets are
// lower than the offsets of the broker.
type Store interface {
	// Offsets returns the stored offsets of the given lanes, in the same order.
	Offsets(ctx context.Context, consumer string, lanes []string) ([]LaneOffset, error)
	// AdvanceOffsets raises all offsets or none, and returns the previous offsets in order. If a stored offset is
	// already higher, AdvanceOffsets does not lower it. If a stored offset is lower than Advance.Least, or missing, no
	// offset is written. The caller finds the lane in the returned offsets (see Lacks). Each lane may occur only once
	// in the parameter to. After an error, either no offset or all offsets were written.
	AdvanceOffsets(ctx context.Context, consumer string, to []Advance) (before []LaneOffset, err error)
}

// Lacks reports whether the stored offset before the call was lower than Least.
func (a Advance) Lacks(before LaneOffset) bool { return before.Offset < a.Least }
