// Package versions defines the versions of streams for stores and the engine. A stream contains the versions of
// one aggregate, numbered without gaps.
package versions

import (
	"fmt"
	"time"
)

// Position is a message's position in a stream. For each stream, the store keeps the last applied version, which the
// commit of the effect updates. So versions are applied in order, each once, in whatever order they are delivered.
type Position struct {
	// Stream is the stream's name, 1 to MaxStream bytes. A stream belongs to a consumer and a source, so two
	// sources never share a stream.
	Stream []byte
	// Number is the version, at least 1. Number is 0 if the message has no version.
	Number int64
	// Start is the first version of a stream that the store does not know yet. 0 means that the stream starts
	// with the version of its first fresh message.
	Start int64
	// If Asks is true, the store checks the version. For a message that should be applied, the store then returns Gap
	// if an earlier version is missing, and Stale if the stream has already reached the version. The batch locks the
	// stream until the batch ends. The stream advances to the version of a message with the outcome Applied or
	// Discarded, if that version is the next version and the message is not rolled back. The stream also advances to
	// the version of a claimed row that is completed or discarded.
	Asks bool
}

// Rows selects rows of one stream of a consumer, ordered by version and then by number.
type Rows struct {
	Source, Name string
	// From is the first selected version. For paging, rows of version From are returned only if their number is greater
	// than store.RowFilter.After. To is the last selected version; 0 means no limit.
	From, To int64
}

// Max is the largest version; Max+1 still fits into an int64.
const Max = 1<<63 - 2

// DefaultGap is how long a version waits for its predecessor by default.
const DefaultGap = 10 * time.Minute

// MaxStream is the maximum length of a stream's name in bytes.
const MaxStream = 512

// CheckStream returns an error if a stream cannot have the given name.
func CheckStream(name string) error {
	if len(name) == 0 || len(name) > MaxStream {
		return fmt.Errorf("the stream's name has %d bytes; it must have 1 to %d", len(name), MaxStream)
	}
	return nil
}
