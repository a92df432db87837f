// Package versions defines the versions of streams for stores and the engine. A stream contains the versions of
// one aggregate, numbered without gaps.
package versions

import (
	"fmt"
	"time"
)

// Position is a message's position in a stream. For each stream of a scope the store keeps the
// last applied version, and updates it in the commit of the effect. Versions are therefore
// applied in order, each once, whatever the order of their delivery.
type Position struct {
	// Stream is the stream's name, 1 to MaxStream bytes. Streams belong to the mark's scope,
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

// Rows selects rows of one stream of a consumer, ordered by version and then by number.
type Rows struct {
	Source, Name string
	// From is the first version; its rows start after number store.RowFilter.After, for paging. To
	// is the last version; 0 means no limit.
	From, To int64
}

// Max is the largest version; Max+1 still fits into an int64.
const Max = 1<<63 - 2

// DefaultGap is how long a version waits for the one before it.
const DefaultGap = 10 * time.Minute

// MaxStream is the maximum length of a stream's name in bytes.
const MaxStream = 512

// CheckStream returns an error if a stream cannot have this name.
func CheckStream(name string) error {
	if len(name) == 0 || len(name) > MaxStream {
		return fmt.Errorf("the stream's name has %d bytes; it must have 1 to %d", len(name), MaxStream)
	}
	return nil
}
