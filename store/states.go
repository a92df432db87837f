package store

import (
	"github.com/semel-go/semel/internal/enum"
)

// String returns the stored name of the state.
func (s RowState) String() string { return string(s) }

// RowState is the state of an inbox row. Names are stored and never change. A row with an unknown state
// was written by a newer release; this release shows the row and does not change it.
type RowState string

// The states of an inbox row.
const (
	// StateReceived: the message is stored and waits for a worker.
	StateReceived RowState = "RECEIVED"
	// StateInProgress: a worker has claimed the row; see Claim.
	StateInProgress RowState = "IN_PROGRESS"
	// StateFailedRetryable: the row waits for its next attempt.
	StateFailedRetryable RowState = "FAILED_RETRYABLE"
	StateCompleted       RowState = "COMPLETED"
	StateParked          RowState = "PARKED"
	StateDeadLettered    RowState = "DEAD_LETTERED"
	StateDiscarded       RowState = "DISCARDED"
	// StateBlocked: the row waits for an earlier version of its stream, up to a maximum time, or for
	// the row before it in its line.
	StateBlocked RowState = "BLOCKED"
)

// String returns the name of the event.
func (e RowEvent) String() string {
	return enum.Name([]string{RowClaimed: "claimed", RowCompleted: "completed", RowFailed: "failed", RowParked: "parked",
		RowDeadLettered: "dead_lettered", RowDiscarded: "discarded", RowReleased: "released", RowRetried: "retried",
		RowBlocked: "blocked", RowFreed: "freed", RowResolved: "resolved", RowSuppressed: "suppressed", RowStepped: "stepped",
		RowEmitted: "emitted", RowReopened: "reopened"}, e, "RowEvent")
}

// RowEvent is an event in the life of an inbox row.
type RowEvent uint8

// The events. For a row in progress they are caused by its claim, except that an operator can also
// discard or release it.
const (
	// RowClaimed: a worker claimed the row because it was due or an earlier lease had ended.
	RowClaimed RowEvent = iota + 1
	// RowCompleted: its effect is committed.
	RowCompleted
	// RowFailed: its handler failed, and a retry is due later.
	RowFailed
	RowParked
	RowDeadLettered
	RowDiscarded
	// RowReleased: its worker released the claim without an attempt.
	RowReleased
	// RowRetried: an operator made it due now.
	RowRetried
	// RowBlocked: it must wait for an earlier row or version.
	RowBlocked
	// RowFreed: the previous version was applied or skipped, or the previous row left the line.
	RowFreed
	// RowResolved: an operator found out that its effect exists; see Resolver.
	RowResolved
	// RowSuppressed: an operator holds it back.
	RowSuppressed
	// RowStepped: a step is committed, and the next step is due now. Attempts are counted from zero.
	RowStepped
	// RowEmitted: it was completed and is sent again; see Emitter.
	RowEmitted
	// RowReopened: an operator reopened the discarded row; see Requeuer.
	RowReopened
	rowEvents = iota // the number of events
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

// Known reports whether this release knows the state.
func (s RowState) Known() bool {
	_, known := transitions[s]
	return known
}

// After returns the state of a row in state s after an event, and reports whether the event is legal in
// that state. It is not if this release does not know s.
func (s RowState) After(e RowEvent) (RowState, bool) {
	next, legal := transitions[s][e]
	return next, legal
}

// Outcome returns the outcome of the marker that belongs to a row in state s; 0 if this release does not
// know s.
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

// Ended reports whether a row in state s is completed, discarded or dead-lettered. A parked row has not
// ended.
func (s RowState) Ended() bool {
	return s == StateCompleted || s == StateDiscarded || s == StateDeadLettered
}
