package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// StoredStream is a stored stream.
type StoredStream struct {
	Consumer, Source string
	Generation       int64
	Name             string
	// Last is the last version that was applied or skipped. Last is -1 if the stream starts with its first
	// message and only duplicates were delivered so far.
	Last int64
	// Blocked is the number of rows that wait for an earlier version, or that were parked because the earlier
	// version did not arrive in time. First is the smallest version of these rows. Row is the number of the
	// row with version First. Oldest is the time when the first of these rows was received, by the store's
	// clock.
	Blocked    int64
	First, Row int64
	Oldest     time.Time
}

// StreamFilter selects streams. Zero fields select all.
type StreamFilter struct {
	Consumer, Stream string
	// Gaps selects streams with blocked rows.
	Gaps bool
	// Limit is the maximum number of streams; 0 means 1,000.
	Limit int
}

// Streams is implemented by an Inbox with Leases that keeps the versions of streams. The commit that applies
// a version unblocks the rows that wait for that version. A blocked row can also be claimed after its maximum
// wait, which was set when the row was written.
type Streams interface {
	// Streams returns streams by consumer, source and name.
	Streams(ctx context.Context, f StreamFilter) ([]StoredStream, error)
	// SkipTo moves a stream from its last version to a later version, as if the versions between them had
	// been applied, and unblocks the rows that wait for them. semel.ErrChanged means that the stream is no
	// longer at that version or does not exist; nothing is changed. The audit record names the first blocked
	// row.
	SkipTo(ctx context.Context, s StoredStream, to int64, a store.Act) error
}
