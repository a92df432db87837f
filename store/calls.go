package store

import (
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// CallStarted describes the calls of a row after the start of another call was recorded.
type CallStarted struct {
	// Stands is true if the claim is valid. If Stands is false, nothing was written, and the other fields are zero.
	Stands bool
	// Started is the number of started calls, including the new call. Finished is the number of calls with a
	// known outcome.
	Started, Finished int
	// Since is the time since the start of the first call, by the store's clock.
	Since time.Duration
	// Again is true if the message was completed before and is sent again; see Emitter.
	Again bool
}

// Unknown reports whether an earlier call has an unknown outcome.
func (c CallStarted) Unknown() bool { return c.Finished < c.Started-1 }

// CallOutcome is the outcome of a call at the end of its claim.
type CallOutcome uint8

// The outcomes.
const (
	// CallNone means that the recorded calls of the row are not changed.
	CallNone CallOutcome = iota
	// CallNotMade means that the call was not made. If its start was recorded, that record is removed.
	CallNotMade
	// CallUnknown means that it is unknown whether the call had an effect.
	CallUnknown
	// CallFailed means that this call had no effect. Unknown outcomes of earlier calls stay unknown.
	CallFailed
	// CallDecided means that the effect exists, or that it never will. The outcome of all calls is then known.
	CallDecided
)

// String returns the outcome's name.
func (o CallOutcome) String() string {
	return enum.Name([]string{CallNone: "none", CallNotMade: "not made", CallUnknown: "unknown", CallFailed: "failed", CallDecided: "decided"}, o, "CallOutcome")
}

// UnknownOutcome reports whether a call for the row's message has no known outcome. The result is also true
// while a call is in progress.
func (r *StoredRow) UnknownOutcome() bool { return r.CallsStarted > r.CallsFinished }
