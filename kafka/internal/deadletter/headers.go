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

// A dead letter may be read by another consumer and become its dead letter. Then the headers of
// the first letter are kept under other names, so that nothing of the record is lost. The other
// consumer may make an identity of them.

// MostWas is how many earlier letters a letter keeps the headers of. Without a bound the headers
// would grow for ever between two consumers that read each other's dead letters.
const MostWas = 4

const prefix = "semel-"

// ours reports whether a header is one of those a dead letter gets.
func ours(name string) bool {
	switch name {
	case HeaderReason, HeaderError, HeaderAttempts, HeaderConsumer, HeaderTopic, HeaderPartition, HeaderOffset, HeaderTime, semelheader.Length:
		return true
	}
	return false
}

// OfLetter reports whether a header says something of a letter, and how many letters back:
// 0 is the newest.
func OfLetter(name string) (back int, of bool) {
	for ; strings.HasPrefix(name, HeaderWas); back++ {
		name = prefix + strings.TrimPrefix(name, HeaderWas)
	}
	return back, ours(name)
}

// inLetter is the name that a header of a record has in its letter; false if it has none.
func inLetter(name string) (string, bool) {
	switch back, of := OfLetter(name); {
	case !of:
		return name, true
	case back == MostWas:
		return "", false
	}
	return HeaderWas + strings.TrimPrefix(name, prefix), true
}

// outOfLetter is the name that a header of a letter has in its record; false if it came with
// the letter.
func outOfLetter(name string) (string, bool) {
	switch back, of := OfLetter(name); {
	case !of:
		return name, true
	case back == 0:
		return "", false
	}
	return prefix + strings.TrimPrefix(name, HeaderWas), true
}
