package contract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
)

// Calls is an optional ability of Leases: to remember of a row which calls were begun for
// its message outside of any transaction, since when, and of which of them it is known
// what became. A row with fewer that have finished than were started has an unknown
// outcome: whoever began one may have called, and died, or heard no answer. That is kept
// for as long as the row, whoever claims it, and whatever else happens to it.
type Calls interface {
	// StartCalls writes down, for each claim that stands, that its call is about to be
	// made, and lets its lease end so long after now, if it does not end later already.
	// The same token asked again, after an answer that was lost, counts once. It returns
	// what each row has then, in the order of the claims.
	StartCalls(ctx context.Context, claims []Claim, lease time.Duration) ([]CallStarted, error)
}

// CallStarted is what a row knows of its calls when another one is begun.
type CallStarted struct {
	// Stands says that the claim does; otherwise nothing was written, and the rest is 0.
	Stands bool
	// Started are the calls that were begun, this one among them; Finished those of
	// which it is known what became.
	Started, Finished int
	// Since is how long ago the first of them was begun, by the store's clock.
	Since time.Duration
	// Again says that the message was done before and is sent again; see Emitter.
	Again bool
}

// Unknown reports whether the outcome of a call before this one is unknown.
func (c CallStarted) Unknown() bool { return c.Finished < c.Started-1 }

// CallOutcome is what is known of a call when its claim ends.
type CallOutcome uint8

// The outcomes.
const (
	// CallNone: nothing is said of a call, and what the row knows stays as it is.
	CallNone CallOutcome = iota
	// CallNotMade: none was made; its start is taken back, if one was written down.
	CallNotMade
	// CallUnknown: nobody knows whether it had an effect.
	CallUnknown
	// CallFailed: this one had no effect. What became of those before is known no better.
	CallFailed
	// CallDecided: the effect is there, or will never be: it is known what became of all.
	CallDecided
)

// String is the outcome's name.
func (o CallOutcome) String() string {
	return enum.Name([]string{CallNone: "none", CallNotMade: "not made", CallUnknown: "unknown", CallFailed: "failed", CallDecided: "decided"}, o, "CallOutcome")
}

// Resolution is what somebody found out about a row whose outcome is unknown.
type Resolution uint8

// The resolutions.
const (
	// ResolvedDone: the effect is there.
	ResolvedDone Resolution = iota + 1
	// ResolvedNotDone: none of the calls had an effect.
	ResolvedNotDone
)

// String is the resolution's word in commands.
func (r Resolution) String() string {
	return enum.Name([]string{ResolvedDone: "done", ResolvedNotDone: "not-done"}, r, "Resolution")
}

// Fits is nil, or says that it is none.
func (r Resolution) Fits() error {
	if r != ResolvedDone && r != ResolvedNotDone {
		return errors.New("semel: say whether it was done or not; what is unknown stays so by itself")
	}
	return nil
}

// Resolver is an optional ability of an Inbox whose rows remember calls (Calls): to record
// what became of those whose outcome is unknown. Acts are recorded as those of an Inbox,
// with the Resolution as their Result.
// A Requeuer that is a Resolver refuses to requeue a row that was set aside with
// semel.ReasonOutcomeUnknown, with semel.ErrState: nobody may repeat it blindly.
type Resolver interface {
	// Resolve ends a row as completed and its marker as applied (ResolvedDone), or makes
	// it due now with its calls forgotten, as if none had been made, and its marker
	// waiting (ResolvedNotDone). The row is parked, waits for its time, or is
	// dead-lettered. semel.ErrChanged: the row has another revision; semel.ErrState: its
	// state does not allow it, or no outcome is unknown; semel.ErrConflict: its identity
	// is applied, or another of its rows waits. Nothing is changed then.
	Resolve(ctx context.Context, number, revision int64, r Resolution, a Act) error
}

// UnknownOutcome reports whether it is not known what became of a call for the row's
// message. While one is under way that is so, too.
func (r *StoredRow) UnknownOutcome() bool { return r.CallsStarted > r.CallsFinished }

// MayRequeue is nil, or a semel.ErrState that says why nobody may have the handler run
// again blindly: a row with this reason, and an outcome that is unknown or not.
func MayRequeue(number int64, reason semel.Reason, unknown bool) error {
	if unknown && reason == semel.ReasonOutcomeUnknown {
		return fmt.Errorf("row %d: nobody knows whether a call for it took effect, and the other side may have forgotten its key; find out, and say so with semel inbox resolve: %w", number, semel.ErrState)
	}
	return nil
}

// MayResolve is nil, or a semel.ErrState that says why nothing is to be resolved of a row
// in this state, of an outcome that is unknown or not.
func MayResolve(number int64, state RowState, unknown bool) error {
	if _, legal := state.After(RowResolved); !legal {
		return fmt.Errorf("row %d is %s, and is resolved when it is parked, waits for its time, or is dead-lettered: %w", number, state, semel.ErrState)
	}
	if !unknown {
		return fmt.Errorf("row %d: of its calls no outcome is unknown: %w", number, semel.ErrState)
	}
	return nil
}
