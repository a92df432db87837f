package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

// Bound is the beginning or the end of a replay. The zero value is the beginning of the source, or its
// current end.
type Bound struct {
	// Time, if not zero, is the time of the first message, or of the first message after the last.
	Time time.Time
	// Offsets are offsets by lane, or under the empty name that of the only lane; nil: none given.
	Offsets map[string]int64
}

// Origin is a source from which messages are replayed.
type Origin interface {
	// Plan returns the current range between two bounds.
	Plan(ctx context.Context, from, to Bound) (admin.ReplayProgress, error)
	// Source reads the range from its progress. An error that wraps ErrOther reports that the source has
	// changed.
	Source(ctx context.Context, p admin.ReplayProgress) (source.Source, error)
	Close()
}
