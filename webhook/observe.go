package webhook

import (
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// Fate is what became of a request.
type Fate uint8

// The fates. Of those from Received to Ended the store has what it must, and the answer is
// 200; of the others nothing is known to be stored.
const (
	// Received: its message is committed.
	Received Fate = iota + 1
	// Duplicate: its message was there before.
	Duplicate
	// Parked: it is set aside in the store, as without a usable identity, or with other
	// content than before.
	Parked
	// Ended: it was discarded or skipped, as the consumer's policy says.
	Ended
	// NotPost: its method is another; 405.
	NotPost
	// Encoded: its body has a content encoding, and which bytes were signed is not sure; 415.
	Encoded
	// NotSigned: a header of the signature is missing; 401.
	NotSigned
	// Malformed: the headers of the signature cannot be read, or have none that could be right;
	// 401.
	Malformed
	// Forged: no secret makes its signature; 401.
	Forged
	// Old: the signed time is too long ago, or too far ahead; 401. The body is not read, so that
	// nobody knows whether the signature is right.
	Old
	// TooLarge: its body is too long; 413.
	TooLarge
	// Incomplete: its body ended early, or came too slowly; 400.
	Incomplete
	// Busy: as much is in hand as may be; 429.
	Busy
	// Crowded: too many bodies of its client address are being read; 429.
	Crowded
	// Unavailable: nothing was committed in time, or the consumer handed it back; 503.
	Unavailable
	// Gone: the client had gone before the answer, which is 503; its message may be
	// committed.
	Gone

	fates = iota + 1
)

var fateNames = []string{
	Received: "received", Duplicate: "duplicate", Parked: "parked", Ended: "ended", NotPost: "not_post", Encoded: "encoded",
	NotSigned: "not_signed", Malformed: "malformed", Forged: "forged", Old: "old", TooLarge: "too_large",
	Incomplete: "incomplete", Busy: "busy", Crowded: "crowded", Unavailable: "unavailable", Gone: "gone",
}

// String is the fate's name.
func (f Fate) String() string { return enum.Name(fateNames, f, "Fate") }

// Fates are all of them, in their order.
func Fates() []Fate {
	all := make([]Fate, 0, fates-1)
	for f := Received; f < fates; f++ {
		all = append(all, f)
	}
	return all
}

// Observation is what became of a request. It has no header, no identity and no body.
type Observation struct {
	Fate Fate
	// Status is that of the answer.
	Status int
	// Bytes is how long the body was, as far as it was read.
	Bytes int64
	// Took is how long the request was here.
	Took time.Duration
}

// counts are those of the fates, and of equal bodies.
type counts struct {
	by     [fates]atomic.Uint64
	repeat atomic.Uint64
}

// Count is how many requests have ended so.
func (r *Receiver) Count(f Fate) uint64 {
	if f == 0 || int(f) >= len(r.counts.by) {
		return 0
	}
	return r.counts.by[f].Load()
}

// EqualBodies is how many requests had the body of an earlier one and other values of
// headers that nobody signed: a provider that tells two receivers of one event, or somebody
// who sends again what they saw. Of the last 4096 bodies that is known.
func (r *Receiver) EqualBodies() uint64 { return r.counts.repeat.Load() }
