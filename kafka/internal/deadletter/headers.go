package deadletter

import (
	"strings"

	"github.com/semel-go/semel/internal/semelheader"
)

// Headers that a dead letter gets beside its own, as package kafka has them.
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

// If another consumer reads a dead letter and writes it as its own dead letter, the headers of the first letter are kept
// under other names. So nothing of the record is lost; the other consumer may use them for its identities.

// MostWas is how many earlier letters a letter keeps the headers of. Without a limit the headers would grow endlessly
// between two consumers that read each other's dead letters.
const MostWas = 4

const prefix = "semel-"

// ours reports whether a header is one that dead letters get.
func ours(name string) bool {
	switch name {
	case HeaderReason, HeaderError, HeaderAttempts, HeaderConsumer, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTime, semelheader.Length:
		return true
	}
	return false
}

// OfLetter reports whether a header describes a letter, and which one: 0 is the newest, 1 the one before, and so on.
func OfLetter(name string) (back int, of bool) {
	for ; strings.HasPrefix(name, HeaderWas); back++ {
		name = prefix + strings.TrimPrefix(name, HeaderWas)
	}
	return back, ours(name)
}

// inLetter returns the name that a record's header has in its letter; false if it is not copied.
func inLetter(name string) (string, bool) {
	switch back, of := OfLetter(name); {
	case !of:
		return name, true
	case back == MostWas:
		return "", false
	}
	return HeaderWas + strings.TrimPrefix(name, prefix), true
}

// outOfLetter returns the name that a letter's header has in the original record; false if the letter added it.
func outOfLetter(name string) (string, bool) {
	switch back, of := OfLetter(name); {
	case !of:
		return name, true
	case back == 0:
		return "", false
	}
	return prefix + strings.TrimPrefix(name, HeaderWas), true
}
