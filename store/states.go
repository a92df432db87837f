package store

import (
	"github.com/semel-go/semel/internal/enum"
)

// String returns the stored name of the state.
func (s RowState) String() string { return string(s) }

// RowState is the state of an inbox row. The names are stored and never change. If this release does not know the state
// of a row, a newer release wrote the row. This release shows a row with an unknown state, but does not change the row.
type RowState string

// The states of an inbox row.
const (
	// StateReceived means that the message is stored and waits for a worker.
	StateReceived RowState = "RECEIVED"
	// StateInProgress means that a worker has claimed the row; see Claim.
	StateInProgress RowState = "IN_PROGRESS"
	// StateFailedRetryable means that the row waits for its next attempt.
	StateFailedRetryable RowState = "FAILED_RETRYABLE"
	StateCompleted       RowState = "COMPLETED"
	StateParked          RowState = "PARKED"
	StateDeadLettered    RowState = "DEAD_LETTERED"
	StateDiscarded       RowState = "DISCARDED"
	// StateBlocked means that the row waits for an earlier version of its stream, up to a maximum time, or for an
	// earlier row of its key or lane.
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

// The events of rows. Events of a row in progress come from its claim. In addition, an operator can discard or release
// the row.
const (
	// RowClaimed means that a worker claimed the row, because the row was due or an earlier lease had ended.
	RowClaimed RowEvent = iota + 1
	// RowCompleted means that the effect of the message is committed.
	RowCompleted
	// RowFailed means that the handler failed, and that a retry follows later.
	RowFailed
	RowParked
	RowDeadLettered
	RowDiscarded
	// RowReleased means that the worker released the claim without an attempt.
	RowReleased
	// RowRetried means that an operator made the row due now.
	RowRetried
	// RowBlocked means that the row must wait for an earlier row or version.
	RowBlocked
	// RowFreed means that the row no longer waits: the previous version was applied or skipped, or the previous row of
	// its key or lane has ended or was skipped.
	RowFreed
	// RowResolved means that an operator found out that the effect of the row exists; see Resolver.
	RowResolved
	// RowSuppressed means that an operator prevents the row from being sent.
	RowSuppressed
	// RowStepped means that a step is committed and the next step can run now. Attempts of the next step are counted
	// from zero.
	RowStepped
	// RowEmitted means that the row was completed and is sent again; see Emitter.
	RowEmitted
	// RowReopened means that an operator reopened the discarded row; see Requeuer.
	RowReopened
	rowEvents = iota // number of events
)

// transitions maps a state and an event to the next state. An event that is missing for a state cannot happen in that
// state.
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

// After returns the state of a row in state s after an event. If the event is not allowed in the state s, or if this
// release does not know s, the bool is false.
func (s RowState) After(e RowEvent) (RowState, bool) {
	next, legal := transitions[s][e]
	return next, legal
}

// Outcome returns the outcome in the marker of a row in state s; 0 if this release does not know s.
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

// Ended reports whether a row in state s is completed, discarded or dead-lettered. A parked row has not ended.
func (s RowState) Ended() bool {
	return s == StateCompleted || s == StateDiscarded || s == StateDeadLettered
}
