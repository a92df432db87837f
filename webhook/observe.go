package webhook

import (
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// Fate is the outcome of a request.
type Fate uint8

// The fates. From Received to Ended, everything necessary is stored and the answer is 200. For the
// others, nothing is known to be stored.
const (
	// Received: the message is committed.
	Received Fate = iota + 1
	// Duplicate: the message was stored before.
	Duplicate
	// Parked: the message is parked, for example because it has no usable identity or is a conflict.
	Parked
	// Ended: the message was discarded or skipped by the policy of the consumer.
	Ended
	// NotPost: the method is not POST; 405.
	NotPost
	// Encoded: the body has a content encoding, so it is not clear which bytes were signed; 415.
	Encoded
	// NotSigned: a signature header is missing; 401.
	NotSigned
	// Malformed: the signature headers cannot be parsed, appear twice, or have no signature of the right
	// length; 401.
	Malformed
	// Forged: the signature matches no secret; 401.
	Forged
	// Old: the signed time is too long ago, or too far ahead; 401. The body is not read and the
	// signature not checked.
	Old
	// TooLarge: the body is too long; 413.
	TooLarge
	// Incomplete: the body ended early or arrived too slowly; 400.
	Incomplete
	// Busy: the limit of Config.InHand is reached; 429.
	Busy
	// Crowded: too many bodies from the same client address are being read; 429.
	Crowded
	// Unavailable: the message was not committed in time, or the consumer nacked it; 503.
	Unavailable
	// Gone: the client disconnected before the answer, 503. The message may be committed.
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

// Fates returns all fates, in order.
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
	by     [fates]atomic.Uint64
	repeat atomic.Uint64
}

// Count returns the number of requests with this fate.
func (r *Receiver) Count(f Fate) uint64 {
	if f == 0 || int(f) >= len(r.counts.by) {
		return 0
	}
	return r.counts.by[f].Load()
}

// EqualBodies returns the number of requests whose body is equal to one of the last 4096 bodies but whose
// unsigned headers differ. The cause is a provider that sends an event twice, or an attacker who repeats
// a request.
func (r *Receiver) EqualBodies() uint64 { return r.counts.repeat.Load() }
