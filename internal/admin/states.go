package admin

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// State is the state of a message as operators read and write it. Several stored states can be one State.
type State string

// The states, in the order in which they are listed.
const (
	// Waiting: the message waits for its first attempt, or for the next one.
	Waiting State = "waiting"
	Running State = "running"
	// Blocked: it waits for an earlier version of its stream, or for the row before it in its line.
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

// Stored returns the stored states of s; nil if there are none.
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
