package contract

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
)

// String is the state's name, as it is stored.
func (s RowState) String() string { return string(s) }

// RowState is the state of an inbox row. Names are stored and never change. A
// state that this release does not write is a newer one's: the row is shown with
// it, and nothing may be done to it here.
type RowState string

// The states of an inbox row.
const (
	// StateReceived: the message is here, and waits for a worker.
	StateReceived RowState = "RECEIVED"
	// StateInProgress: a worker has claimed it; see Claim.
	StateInProgress RowState = "IN_PROGRESS"
	// StateFailedRetryable: it waits for its time, and then for a worker.
	StateFailedRetryable RowState = "FAILED_RETRYABLE"
	StateCompleted       RowState = "COMPLETED"
	StateParked          RowState = "PARKED"
	StateDeadLettered    RowState = "DEAD_LETTERED"
	StateDiscarded       RowState = "DISCARDED"
	// StateBlocked: it waits for an earlier version of its stream, and until a time, or
	// for the row before it in its line.
	StateBlocked RowState = "BLOCKED"
)

// String is the event's name.
func (e RowEvent) String() string {
	return enum.Name([]string{RowClaimed: "claimed", RowCompleted: "completed", RowFailed: "failed", RowParked: "parked",
		RowDeadLettered: "dead_lettered", RowDiscarded: "discarded", RowReleased: "released", RowRetried: "retried",
		RowBlocked: "blocked", RowFreed: "freed", RowResolved: "resolved", RowSuppressed: "suppressed", RowStepped: "stepped",
		RowEmitted: "emitted", RowReopened: "reopened"}, e, "RowEvent")
}

// RowEvent is what happens to an inbox row.
type RowEvent uint8

// The events. Those of a row in progress are its claim's, but that a person may
// discard or release it, too.
const (
	// RowClaimed: a worker took it: when it was due, or because the lease of the
	// worker that had it has ended.
	RowClaimed RowEvent = iota + 1
	// RowCompleted: its effect is committed.
	RowCompleted
	// RowFailed: its handler failed, and it is due again at a time.
	RowFailed
	RowParked
	RowDeadLettered
	RowDiscarded
	// RowReleased: its worker gave it back without an attempt.
	RowReleased
	// RowRetried: a person made it due now.
	RowRetried
	// RowBlocked: its turn has not come.
	RowBlocked
	// RowFreed: the version before it has taken effect, or was skipped; or the row before
	// it has left its line.
	RowFreed
	// RowResolved: somebody found out that its effect is there; see Resolver.
	RowResolved
	// RowSuppressed: a person keeps it from being worked on; see IntentHolder.
	RowSuppressed
	// RowStepped: a step of it is committed, and the next one is due now. Its attempts
	// begin anew.
	RowStepped
	// RowEmitted: it was done, and is to be sent again; see Emitter.
	RowEmitted
	// RowReopened: a person takes back that it was discarded; see Requeuer.
	RowReopened
	rowEvents = iota // how many there are
)

// transitions is the state after each event that may happen to a row in a state.
var transitions = map[RowState]map[RowEvent]RowState{
	StateReceived: {RowClaimed: StateInProgress, RowRetried: StateReceived, RowDiscarded: StateDiscarded, RowSuppressed: StateParked},
	StateInProgress: {RowClaimed: StateInProgress, RowCompleted: StateCompleted, RowFailed: StateFailedRetryable,
		RowParked: StateParked, RowDeadLettered: StateDeadLettered, RowDiscarded: StateDiscarded, RowReleased: StateReceived, RowBlocked: StateBlocked,
		RowStepped: StateReceived},
	StateFailedRetryable: {RowClaimed: StateInProgress, RowRetried: StateFailedRetryable, RowDiscarded: StateDiscarded, RowResolved: StateCompleted, RowSuppressed: StateParked},
	StateBlocked:         {RowClaimed: StateInProgress, RowFreed: StateReceived, RowDiscarded: StateDiscarded},
	StateParked:          {RowRetried: StateFailedRetryable, RowFreed: StateReceived, RowDiscarded: StateDiscarded, RowResolved: StateCompleted},
	StateDeadLettered:    {RowRetried: StateFailedRetryable, RowDiscarded: StateDiscarded, RowResolved: StateCompleted},
	StateCompleted:       {RowEmitted: StateReceived},
	StateDiscarded:       {RowReopened: StateParked},
}

// Known reports whether this release writes rows of this state, and so knows what
// it means.
func (s RowState) Known() bool {
	_, known := transitions[s]
	return known
}

// After is the state of a row in state s after an event; false if that may not
// happen to it, or if this release does not know s.
func (s RowState) After(e RowEvent) (RowState, bool) {
	next, legal := transitions[s][e]
	return next, legal
}

// CanBecome reports whether a row may go from state s to state t; false if this
// release does not know s.
func (s RowState) CanBecome(t RowState) bool {
	for _, next := range transitions[s] {
		if next == t {
			return true
		}
	}
	return false
}

// MayBecome is nil if a row may go from state s to state t; otherwise an error
// that wraps semel.ErrState and says why not.
func (s RowState) MayBecome(t RowState) error {
	switch {
	case s.CanBecome(t):
		return nil
	case !s.Known():
		return fmt.Errorf("is %s, which a newer release wrote; only that release, or a newer one, may act on it: %w", s, semel.ErrState)
	}
	return fmt.Errorf("is %s: %w", s, semel.ErrState)
}

// Outcome is what the marker of a message says whose row is in state s; 0 if this
// release does not know s.
func (s RowState) Outcome() Outcome {
	switch s {
	case StateReceived, StateInProgress, StateFailedRetryable, StateBlocked:
		return Waiting
	case StateCompleted:
		return Applied
	case StateParked:
		return Parked
	case StateDeadLettered:
		return DeadLettered
	case StateDiscarded:
		return Discarded
	}
	return 0
}

// Ended reports whether nothing more happens to a row in state s by itself, or is meant
// to: it is completed, discarded, or dead-lettered. What is parked has not ended.
func (s RowState) Ended() bool {
	return s == StateCompleted || s == StateDiscarded || s == StateDeadLettered
}
