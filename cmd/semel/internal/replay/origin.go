package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
)

// Bound is where a replay begins, or ends. The zero value is the beginning, or the end as it
// stands now.
type Bound struct {
	// Time, if not zero, is that of the first message, or of the first one behind the last.
	Time time.Time
	// Offsets are those of lanes, and under the empty name that of the only one; nil: none
	// is given.
	Offsets map[string]int64
}

// Origin is where messages are read again.
type Origin interface {
	// Plan says what lies between two bounds, as it stands now.
	Plan(ctx context.Context, from, to Bound) (admin.ReplayProgress, error)
	// Source reads that, from where it has come to. An error that wraps ErrOther: it is not
	// there any more as it was.
	Source(ctx context.Context, p admin.ReplayProgress) (source.Source, error)
	Close()
}
