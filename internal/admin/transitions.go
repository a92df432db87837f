package admin

import (
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/store"
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

// The events. Events of a row in progress come from its claim. In addition, an operator can discard or release
// the row.
const (
	// RowClaimed means that a worker claimed the row: the time of the row had come, or an earlier lease had
	// ended.
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
	// RowRetried means that an operator scheduled the row to run now.
	RowRetried
	// RowBlocked means that the row must wait for an earlier row or version.
	RowBlocked
	// RowFreed means that the row no longer waits: the previous version was applied or skipped, or the
	// previous row left the line.
	RowFreed
	// RowResolved means that an operator found out that the effect of the row exists; see Resolver.
	RowResolved
	// RowSuppressed means that an operator prevents the row from being sent.
	RowSuppressed
	// RowStepped means that a step is committed and the next step can run now. Attempts are counted from zero
	// again.
	RowStepped
	// RowEmitted means that the row was completed and is sent again; see Emitter.
	RowEmitted
	// RowReopened means that an operator reopened the discarded row; see Requeuer.
	RowReopened
	rowEvents = iota // number of events
)

// transitions maps a state and an event to the next state. Events that are missing cannot happen in the state.
var transitions = map[store.RowState]map[RowEvent]store.RowState{
	store.StateReceived: {RowClaimed: store.StateInProgress, RowRetried: store.StateReceived, RowDiscarded: store.StateDiscarded,
		RowSuppressed: store.StateParked},
	store.StateInProgress: {RowClaimed: store.StateInProgress, RowCompleted: store.StateCompleted, RowFailed: store.StateFailedRetryable,
		RowParked: store.StateParked, RowDeadLettered: store.StateDeadLettered, RowDiscarded: store.StateDiscarded,
		RowReleased: store.StateReceived, RowBlocked: store.StateBlocked, RowStepped: store.StateReceived},
	store.StateFailedRetryable: {RowClaimed: store.StateInProgress, RowRetried: store.StateFailedRetryable,
		RowDiscarded: store.StateDiscarded, RowResolved: store.StateCompleted, RowSuppressed: store.StateParked},
	store.StateBlocked: {RowClaimed: store.StateInProgress, RowFreed: store.StateReceived, RowDiscarded: store.StateDiscarded},
	store.StateParked: {RowRetried: store.StateFailedRetryable, RowFreed: store.StateReceived, RowDiscarded: store.StateDiscarded,
		RowResolved: store.StateCompleted},
	store.StateDeadLettered: {RowRetried: store.StateFailedRetryable, RowDiscarded: store.StateDiscarded, RowResolved: store.StateCompleted},
	store.StateCompleted:    {RowEmitted: store.StateReceived},
	store.StateDiscarded:    {RowReopened: store.StateParked},
}

// After returns the state of a row in state s after an event. The result is false if the event is not allowed
// in that state, or if this release does not know s.
func After(s store.RowState, e RowEvent) (store.RowState, bool) {
	next, legal := transitions[s][e]
	return next, legal
}
