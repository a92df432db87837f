package webhook

import (
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// Fate is the outcome of a request.
type Fate uint8

// The fates. With Received, Duplicate, Parked and Ended, all necessary data are stored and the answer is 200.
// With all other fates, the message was probably not stored.
const (
	// Received means that the message is committed.
	Received Fate = iota + 1
	// Duplicate means that the message was stored before.
	Duplicate
	// Parked means that the message is parked, for example because it has no usable identity or is a
	// conflict.
	Parked
	// Ended means that the message was discarded or skipped by the policy of the consumer.
	Ended
	// NotPost means that the method is not POST; 405.
	NotPost
	// Encoded means that the body has a content encoding, so it is not clear which bytes were signed; 415.
	Encoded
	// NotSigned means that a signature header is missing; 401.
	NotSigned
	// Malformed means that the signature headers cannot be parsed, appear twice, or contain no signature of
	// the right length; 401.
	Malformed
	// Forged means that the signature matches no secret; 401.
	Forged
	// Old means that the signed time is too long ago, or too far ahead; 401. The body is not read and the
	// signature is not checked.
	Old
	// TooLarge means that the body is too long; 413.
	TooLarge
	// Incomplete means that the body ended early or arrived too slowly; 400.
	Incomplete
	// Busy means that the limit of Config.InHand is reached; 429.
	Busy
	// Crowded means that too many bodies from the same client address are being read; 429.
	Crowded
	// Unavailable means that the message was not committed in time, or that the consumer nacked the message;
	// 503.
	Unavailable
	// Gone means that the client disconnected before the answer; 503. The message may be committed.
	Gone

	fates = iota + 1
)

var fateNames = []string{
	Received: "received", Duplicate: "duplicate", Parked: "parked", Ended: "ended", NotPost: "not_post", Encoded: "encoded",
	NotSigned: "not_signed", Malformed: "malformed", Forged: "forged", Old: "old", TooLarge: "too_large",
	Incomplete: "incomplete", Busy: "busy", Crowded: "crowded", Unavailable: "unavailable", Gone: "gone",
}

// String returns the name of the fate.
func (f Fate) String() string { return enum.Name(fateNames, f, "Fate") }

// Fates returns all values of Fate, in the order of their definition.
func Fates() []Fate {
	all := make([]Fate, 0, fates-1)
	for f := Received; f < fates; f++ {
		all = append(all, f)
	}
	return all
}

// Observation describes the outcome of a request. Headers, identities and bodies are not included.
type Observation struct {
	Fate Fate
	// Status is the status of the answer.
	Status int
	// Bytes is the number of bytes of the body that were read.
	Bytes int64
	// Took is the duration of the request.
	Took time.Duration
}

// counts counts fates and equal bodies.
type counts struct {
	byFate [fates]atomic.Uint64
	repeat atomic.Uint64
}

// Count returns the number of requests with the fate f.
func (r *Receiver) Count(f Fate) uint64 {
	if f == 0 || int(f) >= len(r.counts.byFate) {
		return 0
	}
	return r.counts.byFate[f].Load()
}

// EqualBodies returns the number of requests whose body is equal to one of the last 4096 bodies but whose
// unsigned headers differ. The cause is a provider that sends an event twice, or an attacker who repeats a
// request.
func (r *Receiver) EqualBodies() uint64 { return r.counts.repeat.Load() }
