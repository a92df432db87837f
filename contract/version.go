package contract

import (
	"context"
	"time"
)

// Version is a message's position in a stream. A stream contains the versions of one aggregate,
// numbered without gaps. For each stream of a scope the store keeps the last applied version, and
// updates it in the commit of the effect. Versions are therefore applied in order, each once, whatever
// the order of their delivery.
type Version struct {
	// Stream is the stream's name, 1 to identity.MaxStream bytes. Streams belong to the mark's scope,
	// so two sources never share a stream.
	Stream []byte
	// Number is the version, at least 1; 0 if the message has none.
	Number int64
	// Start is the first version of a stream that the store does not know yet; 0 means the version
	// of the stream's first fresh mark.
	Start int64
	// Asks makes the store check the version. A mark with the outcome Applied then gets the verdict
	// Gap if an earlier version is missing, and Stale if the stream is already further. The batch
	// locks the stream until it ends. The stream moves to the version of a mark with the outcome
	// Applied or Discarded if that version is the next one and the mark is not trimmed, and to
	// the version of a claim if the claim is completed or discarded.
	Asks bool
}

// StoredStream is a stored stream.
type StoredStream struct {
	Consumer, Source string
	Generation       int64
	Name             string
	// Last is the last version that was applied or skipped. It is -1 for a stream that starts with
	// its first message if only duplicates were delivered so far.
	Last int64
	// Blocked is the number of rows that wait for an earlier version or were parked because it did
	// not arrive in time. First is their smallest version, Row the number of its row, and Oldest
	// the time when the first of them was received, by the store's clock.
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

// StreamRows selects rows of one stream of a consumer, ordered by version and then by number.
type StreamRows struct {
	Source, Name string
	// From is the first version; its rows start after number RowFilter.After, for paging. To is the
	// last version; 0 means no limit.
	From, To int64
}

// Streams is implemented by an Inbox with Leases that keeps the versions of streams. The commit that
// applies a version unblocks the rows that wait for it. Blocked rows can also be claimed after the
// maximum wait that was set when they were written.
type Streams interface {
	// Streams returns streams by consumer, source and name.
	Streams(ctx context.Context, f StreamFilter) ([]StoredStream, error)
	// SkipTo moves a stream from its last version to a later one, as if the versions between them had
	// been applied, and unblocks the rows that wait for them. semel.ErrChanged: the stream is not
	// at that version any more or does not exist; nothing is changed. The act is recorded with the
	// first blocked row.
	SkipTo(ctx context.Context, s StoredStream, to int64, a Act) error
}
