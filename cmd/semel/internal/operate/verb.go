package operate

import (
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Verb is an act.
type Verb string

// The acts.
const (
	// Retry makes a row due now; whoever claims it works on it.
	Retry Verb = "retry"
	// Release ends the claim of a row in progress, and makes a received row due now that is due
	// later.
	Release Verb = "release"
	Discard Verb = "discard"
	// Edit gives a row another payload.
	Edit Verb = "edit"
	// Pass lets the messages go on that wait behind a row.
	Pass Verb = "skip"
	// Resolve records what became of a call whose outcome is unknown.
	Resolve Verb = "resolve"
	// Send makes an intent due now, also one that was suppressed.
	Send Verb = "send"
	// Suppress keeps an intent from being sent, until somebody sends it.
	Suppress Verb = "suppress"
	// Reopen parks a row again that was discarded, so that it can be retried.
	Reopen Verb = "reopen"
)

// event is what an act does to a row in a state.
func (v Verb) event(s store.RowState) store.RowEvent {
	if v == Release && s == store.StateReceived { // nobody has claimed it
		v = Retry
	}
	switch v {
	case Retry, Send:
		return store.RowRetried
	case Suppress:
		return store.RowSuppressed
	case Release:
		return store.RowReleased
	case Resolve:
		return store.RowResolved
	case Reopen:
		return store.RowReopened
	}
	return store.RowDiscarded
}

// From are the states in which the act can change a row; nil of Pass, for which more than the
// state decides.
func (v Verb) From() (all []store.RowState) {
	if v == Pass {
		return nil
	}
	for _, s := range []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked,
		store.StateParked, store.StateDeadLettered, store.StateDiscarded, store.StateCompleted} {
		if _, legal := s.After(v.event(s)); legal {
			all = append(all, s)
		}
	}
	return all
}

// done is the result of an act that succeeded.
func (o Order) done() string {
	if o.Verb == Retry || o.Verb == Send || o.Verb == Resolve && o.Outcome == admin.ResolvedNotDone {
		return Due
	}
	return Done
}
