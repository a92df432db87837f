package store

import (
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// CallStarted contains the calls of a row when another call is started.
type CallStarted struct {
	// Stands reports that the claim is valid. Otherwise nothing was written and the other fields are
	// zero.
	Stands bool
	// Started is the number of started calls, including this one. Finished is the number of calls with
	// a known outcome.
	Started, Finished int
	// Since is the time since the first call was started, by the store's clock.
	Since time.Duration
	// Again reports that the message was completed before and is sent again; see Emitter.
	Again bool
}

// Unknown reports whether the outcome of a call before this one is unknown.
func (c CallStarted) Unknown() bool { return c.Finished < c.Started-1 }

// CallOutcome is the outcome of a call when its claim ends.
type CallOutcome uint8

// The outcomes.
const (
	// CallNone: the recorded calls of the row are not changed.
	CallNone CallOutcome = iota
	// CallNotMade: the call was not made. A recorded start of it is removed.
	CallNotMade
	// CallUnknown: it is unknown whether the call had an effect.
	CallUnknown
	// CallFailed: this call had no effect. Unknown outcomes of earlier calls stay unknown.
	CallFailed
	// CallDecided: the effect exists or never will. The outcome of all calls is known.
	CallDecided
)

// String is the outcome's name.
func (o CallOutcome) String() string {
	return enum.Name([]string{CallNone: "none", CallNotMade: "not made", CallUnknown: "unknown", CallFailed: "failed", CallDecided: "decided"}, o, "CallOutcome")
}

// UnknownOutcome reports whether a call for the row's message has no known outcome. UnknownOutcome
// is also true while a call is in progress.
func (r *StoredRow) UnknownOutcome() bool { return r.CallsStarted > r.CallsFinished }
