package deadletter

import (
	"strings"

	"github.com/semel-go/semel/internal/semelheader"
)

// Headers that Semel adds to a dead letter. Package kafka exports the same names.
const (
	HeaderReason    = "semel-reason"
	HeaderError     = "semel-error"
	HeaderAttempts  = "semel-attempts"
	HeaderConsumer  = "semel-consumer"
	HeaderTopic     = "semel-topic"
	HeaderPartition = "semel-partition"
	HeaderOffset    = "semel-offset"
	HeaderTime      = "semel-time"
	HeaderWas       = prefix + "was-"
)

// A consumer can read the dead letters of another consumer and write its own dead letters for them. A dead letter of a
// dead letter keeps the headers of the earlier dead letter under other names, because the identity of a message may
// depend on these headers, and nothing of the record may be lost.

// MostWas is the number of earlier dead letters whose headers a dead letter keeps. Without a limit the headers
// would grow endlessly between two consumers that read each other's dead letters.
const MostWas = 4

const prefix = "semel-"

// isOwnHeader reports whether Semel adds a header with the given name to dead letters.
func isOwnHeader(name string) bool {
	switch name {
	case HeaderReason, HeaderError, HeaderAttempts, HeaderConsumer, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTime, semelheader.Length:
		return true
	}
	return false
}

// OfLetter reports whether a header belongs to a dead letter, and to which dead letter: 0 is the newest dead letter, 1
// the previous dead letter, and so on.
func OfLetter(name string) (back int, of bool) {
	for ; strings.HasPrefix(name, HeaderWas); back++ {
		name = prefix + strings.TrimPrefix(name, HeaderWas)
	}
	return back, isOwnHeader(name)
}

// inLetter returns the name that a header of a record gets in the dead letter. The result is false if the
// header is not copied.
func inLetter(name string) (string, bool) {
	switch back, of := OfLetter(name); {
	case !of:
		return name, true
	case back == MostWas:
		return "", false
	}
	return HeaderWas + strings.TrimPrefix(name, prefix), true
}

// outOfLetter returns the name that a header of a dead letter had in the original record. The result is false
// if the original did not have the header.
func outOfLetter(name string) (string, bool) {
	switch back, of := OfLetter(name); {
	case !of:
		return name, true
	case back == 0:
		return "", false
	}
	return prefix + strings.TrimPrefix(name, HeaderWas), true
}
