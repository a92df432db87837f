package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

// Bound is the start or the end of a replay. A zero Bound is the start of the source, or the current end of
// the source.
type Bound struct {
	// Time, as a start, is the earliest time of replayed messages. As an end, Time is the time from which
	// messages are no longer replayed. The zero Time sets no bound.
	Time time.Time
	// Offsets has one offset for each lane. An empty lane name means the only lane of the source. Offsets is nil
	// if the user gave none.
	Offsets map[string]int64
}

// Origin is a source whose messages can be replayed.
type Origin interface {
	// Plan returns the lanes and offsets between two bounds.
	Plan(ctx context.Context, from, to Bound) (admin.ReplayProgress, error)
	// Source returns a source for the part of the range that is not replayed yet. An error that wraps
	// ErrOther means that the source has changed.
	Source(ctx context.Context, p admin.ReplayProgress) (source.Source, error)
	Close()
}
