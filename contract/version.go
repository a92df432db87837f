package contract

import (
	"context"
	"time"
)

// Version is a message's place in a stream: the versions of one aggregate, each the
// last one's successor. A store keeps for each stream of a scope the last version that
// has taken effect, and moves it in the commit that the effect is in; so versions take
// effect in their order, each once, whatever order they come in.
type Version struct {
	// Stream is the stream's name, 1 to identity.MaxStream bytes. It is of the mark's scope:
	// streams of two sources never meet.
	Stream []byte
	// Number is the version, at least 1; 0: the message has none.
	Number int64
	// Start is the version that a stream begins with of which the store knows nothing;
	// 0: the first one that it meets as a fresh mark.
	Start int64
	// Asks has the mark judged. One that says Applied is answered with Gap or Stale
	// where its turn has not come or is over. With it the stream is the batch's until
	// that ends. It moves to the version of a mark that says Applied or Discarded, if
	// that is its next and is not taken back; of a claim, if that is completed or
	// discarded.
	Asks bool
}

// StoredStream is a stream as it stands in the store.
type StoredStream struct {
	Consumer, Source string
	Generation       int64
	Name             string
	// Last is the last version that took effect or was skipped; -1: only copies of what
	// was marked before have been met of one that begins with what comes first.
	Last int64
	// Blocked are the rows that wait for an earlier version, or that were parked because
	// it did not come in time; First is the smallest version of them, Row the number of
	// its row, Oldest when the first of them was received, by the store's clock.
	Blocked    int64
	First, Row int64
	Oldest     time.Time
}

// StreamFilter chooses streams. Zero fields choose all.
type StreamFilter struct {
	Consumer, Stream string
	// Gaps chooses those that have blocked rows.
	Gaps bool
	// Limit is the most that are returned; 0 means 1,000.
	Limit int
}

// StreamRows chooses rows of one stream of a consumer, by version and then by number.
type StreamRows struct {
	Source, Name string
	// From is the first version, of which rows with a number greater than
	// RowFilter.After come, for paging; To is the last version, and 0 bounds nothing.
	From, To int64
}

// Streams is an optional ability of an Inbox that is Leases: to keep the versions of
// streams. Rows of StateBlocked are freed by the commit that brings their predecessor;
// they may be claimed, too, when they have waited for as long as was said when they
// were written.
type Streams interface {
	// Streams returns streams by consumer, source and name.
	Streams(ctx context.Context, f StreamFilter) ([]StoredStream, error)
	// SkipTo moves a stream from its last version to a later one, as if those between
	// had taken effect, and frees what waited for them. semel.ErrChanged: the stream is
	// not at that version any more, or is not known; then nothing is changed. It is
	// recorded with the row of the first that was blocked.
	SkipTo(ctx context.Context, s StoredStream, to int64, a Act) error
}
