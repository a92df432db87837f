package admin

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// State is the state of a message as operators see it. Several states of the store (store.RowState) can be one State.
type State string

const (
	// Waiting means that the message waits for its first or its next attempt.
	Waiting State = "waiting"
	Running State = "running"
	// Blocked means that the message waits for an earlier version of its stream, or for an earlier row of its
	// key or partition.
	Blocked   State = "blocked"
	Parked    State = "parked"
	Dead      State = "dead"
	Discarded State = "discarded"
	Applied   State = "applied"
)

// States returns all states that this release knows.
func States() []State {
	return []State{Waiting, Running, Blocked, Parked, Dead, Discarded, Applied}
}

// StateOf returns the state of a row. A stored state that this release does not know is returned unchanged.
func StateOf(s store.RowState) State {
	for _, state := range States() {
		if slices.Contains(state.Stored(), s) {
			return state
		}
	}
	return State(s)
}

// Stored returns the states of the store (store.RowState) that belong to the State s, or nil if there are none.
func (s State) Stored() []store.RowState {
	switch s {
	case Waiting:
		return []store.RowState{store.StateReceived, store.StateFailedRetryable}
	case Running:
		return []store.RowState{store.StateInProgress}
	case Blocked:
		return []store.RowState{store.StateBlocked}
	case Parked:
		return []store.RowState{store.StateParked}
	case Dead:
		return []store.RowState{store.StateDeadLettered}
	case Discarded:
		return []store.RowState{store.StateDiscarded}
	case Applied:
		return []store.RowState{store.StateCompleted}
	}
	return nil
}
