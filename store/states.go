package store

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

// Known reports whether this release knows the state.
func (s RowState) Known() bool { return s.Outcome() != 0 }

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
