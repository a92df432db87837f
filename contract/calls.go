package contract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
)

// Calls is implemented by a store with Leases that records the external calls of a row's message: how
// many were started, when the first was started, and how many have a known outcome. A row with fewer
// known outcomes than started calls has an unknown outcome: a process may have made the call and
// crashed, or received no response. The record is kept as long as the row.
type Calls interface {
	// StartCalls records, for each valid claim, that its call is about to be made, and extends its
	// lease to this duration from now unless it ends later already. A repeated call with the same
	// token, after a lost response, counts once. It returns the calls of each row in the order of
	// the claims.
	StartCalls(ctx context.Context, claims []Claim, lease time.Duration) ([]CallStarted, error)
}

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

// Resolution is the finding about a row with an unknown outcome.
type Resolution uint8

// The resolutions.
const (
	// ResolvedDone: the effect exists.
	ResolvedDone Resolution = iota + 1
	// ResolvedNotDone: none of the calls had an effect.
	ResolvedNotDone
)

// String is the resolution's word in commands.
func (r Resolution) String() string {
	return enum.Name([]string{ResolvedDone: "done", ResolvedNotDone: "not-done"}, r, "Resolution")
}

// Fits returns an error if r is not a Resolution.
func (r Resolution) Fits() error {
	if r != ResolvedDone && r != ResolvedNotDone {
		return errors.New("semel: say whether it was done or not; what is unknown stays so by itself")
	}
	return nil
}

// Resolver is implemented by an Inbox with Calls in which operators can resolve unknown outcomes. Acts are
// recorded as those of an Inbox, with the Resolution as their Result. A Requeuer that is a Resolver
// rejects, with semel.ErrState, a row that was parked with semel.ReasonOutcomeUnknown, because a retry
// could repeat the call.
type Resolver interface {
	// Resolve completes a row and marks it as Applied (ResolvedDone), or clears its calls and makes it
	// due now with a Waiting marker (ResolvedNotDone). The row must be parked, dead-lettered or
	// waiting for a retry. semel.ErrChanged: the row has another revision. semel.ErrState: its state
	// does not allow it, or it has no unknown outcome. semel.ErrConflict: its identity is applied, or
	// another row of it waits. Nothing is changed then.
	Resolve(ctx context.Context, number, revision int64, r Resolution, a Act) error
}

// UnknownOutcome reports whether a call for the row's message has no known outcome. It is also true
// while a call is in progress.
func (r *StoredRow) UnknownOutcome() bool { return r.CallsStarted > r.CallsFinished }

// MayResolve returns an error that wraps semel.ErrState if a row in this state cannot be resolved, or has
// no unknown outcome.
func MayResolve(number int64, state RowState, unknown bool) error {
	if _, legal := state.After(RowResolved); !legal {
		return fmt.Errorf("row %d is %s, and is resolved when it is parked, waits for its time, or is dead-lettered: %w", number, state, semel.ErrState)
	}
	if !unknown {
		return fmt.Errorf("row %d: of its calls no outcome is unknown: %w", number, semel.ErrState)
	}
	return nil
}
