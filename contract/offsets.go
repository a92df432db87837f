package contract

import "context"

// LaneOffset is how far a lane of a broker's log is done.
type LaneOffset struct {
	// Lane names the lane for ever. A log that is made anew, such as a topic that
	// was deleted and created again, is another lane.
	Lane string
	// Offset is of the first message that is not done; NoOffset where none is known.
	Offset int64
}

// NoOffset is the Offset where none is known.
const NoOffset = -1

// OffsetAdvance raises the offset of a lane.
type OffsetAdvance struct {
	LaneOffset
	// Least is what must stand there already, because it was written before:
	// NoOffset if nothing need be there.
	Least int64
}

// OffsetStore is an optional ability of a store: it keeps how far the lanes of a
// broker are done, by consumer and lane, in the database of the effects. A source
// writes there before it tells its broker. So a database that was restored, or
// failed over to a server that lacks its last commits, is behind the broker and
// can be known by it.
type OffsetStore interface {
	// Offsets returns what stands for these lanes, in their order: NoOffset where
	// nothing does.
	Offsets(ctx context.Context, consumer string, lanes []string) ([]LaneOffset, error)
	// AdvanceOffsets raises offsets, all of them or none, and returns what stood
	// there before, in their order. It lowers none: one that is further already
	// stays. If one stands below its Least, or is not there at all, nothing is
	// written: the caller finds it among what is returned. Lanes are named once
	// each. After an error nothing is written, or all of it.
	AdvanceOffsets(ctx context.Context, consumer string, to []OffsetAdvance) (before []LaneOffset, err error)
}

// Lacks reports whether what stood before is less than what must have stood.
func (a OffsetAdvance) Lacks(before LaneOffset) bool { return before.Offset < a.Least }
