package admin

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// refusal is an error with a text that wraps another error without showing its text.
type refusal struct {
	text string
	is   error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.is }

// Verb is an operator's command that changes rows.
type Verb string

const (
	// Retry makes a row due now, so that a running consumer processes it.
	Retry Verb = "retry"
	// Send makes an intent due now, even if the intent was suppressed.
	Send Verb = "send"
	// Release ends the claim of a row in progress. If a received row is due later, Release makes the row due now.
	Release Verb = "release"
	// Discard closes a row without an effect. Reopen parks a discarded row again.
	Discard Verb = "discard"
	Reopen  Verb = "reopen"
	// Edit replaces the payload of a row.
	Edit Verb = "edit"
	// Skip removes a row from its queue (the rows of a key or lane), so that the later rows of the queue can be
	// processed.
	Skip Verb = "skip"
	// Resolve records the outcome of calls whose outcome was unknown.
	Resolve Verb = "resolve"
	// Suppress makes an intent wait until an operator sends it.
	Suppress Verb = "suppress"
)

// Event returns the event that the command causes for a row in state s.
func (v Verb) Event(s store.RowState) RowEvent {
	switch v {
	case Retry, Send:
		return RowRetried
	case Release:
		if s == store.StateReceived { // not claimed by any process
			return RowRetried
		}
		return RowReleased
	case Suppress:
		return RowSuppressed
	case Resolve:
		return RowResolved
	case Reopen:
		return RowReopened
	}
	return RowDiscarded
}

// Recorded returns the name of the command that audit records contain as the verb.
func (v Verb) Recorded() string {
	if v == Send {
		return string(Retry)
	}
	return string(v)
}

// MakesDue reports whether the command makes rows due.
func (v Verb) MakesDue() bool { return v == Retry || v == Send || v == Release }

// From returns the states in which the command can change a row. From returns nil for Skip, because Skip does
// not depend on the state alone.
func (v Verb) From() (all []store.RowState) {
	if v == Skip {
		return nil
	}
	for _, s := range []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked,
		store.StateParked, store.StateDeadLettered, store.StateDiscarded, store.StateCompleted} {
		if _, legal := After(s, v.Event(s)); legal {
			all = append(all, s)
		}
	}
	return all
}

// May returns nil if the command v may change a row. May calls MayAct or MaySkip, and also checks three rules of
// commands: retry does not send a suppressed intent; no command retries a message without a usable identity; skip
// changes only the first row of a queue.
func (v Verb) May(r *store.StoredRow, due bool) error {
	switch {
	case v == Retry && r.Reason == reasonname.Suppressed && r.State == store.StateParked:
		return refuse(r, "it was suppressed, and semel messages retry does not send it; semel intents retry does")
	case v == Skip && r.State == store.StateBlocked:
		return refuse(r, "it is blocked itself; semel messages show names the row that is first, and skip of that row unblocks the others")
	case v == Skip && r.Place == 0 && r.State == store.StateReceived && !due:
		return refuse(r, "no message waits behind it; semel messages retry makes it due now")
	case v == Skip:
		return MaySkip(r)
	}
	err := MayAct(v.Event(r.State), r, due)
	if (err == nil || errors.Is(err, ErrDueAlready)) && r.Surrogate && (v == Retry || v == Send) {
		return &refusal{fmt.Sprintf("row %d: %s: %s", r.Number, r.Reason, neverRuns(r.Reason)), semel.ErrState}
	}
	return err
}

// MayAct returns nil if an operator may change a row with the event e. If the operator may not, MayAct returns an error
// that wraps semel.ErrState, with the cause and the remedy. The parameter due means that a waiting row is due already;
// the error for RowRetried is then ErrDueAlready. MayAct does not check the other rows of the identity, which MayRun
// checks.
//
// Commands call MayAct for rows that they have read, and stores call MayAct for rows that they have locked.
// So both reject the same rows with the same text.
func MayAct(e RowEvent, r *store.StoredRow, due bool) error {
	_, legal := After(r.State, e)
	switch {
	case r.Reason == reasonname.Erased:
		return refuse(r, "it was erased, so there is nothing to process; a message that the producer sends again with this identity is a duplicate")
	case !legal:
		return refuse(r, illegal(e, r))
	case e == RowRetried && due && r.State == store.StateReceived:
		return &refusal{refuse(r, illegal(e, r)).Error(), ErrDueAlready}
	case e == RowRetried && due && r.State.Outcome() == store.Waiting:
		return fmt.Errorf("row %d: %w", r.Number, ErrDueAlready)
	case e == RowRetried && r.UnknownOutcome() && r.Reason == semel.ReasonOutcomeUnknown:
		return refuse(r, "a call for it may have taken effect, and the other side may have forgotten its key; find out, and record it with semel messages resolve")
	case e == RowResolved && !r.UnknownOutcome():
		return refuse(r, "all its calls have known outcomes")
	case e == RowReopened && r.UnknownOutcome():
		return refuse(r, "a call for it has an unknown outcome, so a retry might repeat the effect; correct the effect by hand")
	case e == RowReopened && r.BodyRemoved:
		return refuse(r, "it no longer has a payload; have the message sent again with another identity")
	}
	return nil
}

// MaySkip returns nil if Lines.Skip may remove the row from its queue. If the row is in no queue, or if its state does
// not allow it, MaySkip returns an error as MayAct does.
func MaySkip(r *store.StoredRow) error {
	if r.Place == 0 || r.State != store.StateParked && r.State.Outcome() != store.Waiting {
		return refuse(r, "no message waits behind it: with on_parked: block, messages of its key or partition wait while it waits or is parked")
	}
	return nil
}

// refuse returns an error that wraps semel.ErrState. The parameter why is a complete sentence.
func refuse(r *store.StoredRow, why string) error {
	return &refusal{fmt.Sprintf("row %d: %s", r.Number, why), semel.ErrState}
}

// illegal says why the state of a row does not allow an event, and which command does allow it.
func illegal(e RowEvent, r *store.StoredRow) string {
	is := fmt.Sprintf("it is %s", StateOf(r.State))
	switch {
	case !r.State.Known():
		return is + ", which a newer release wrote; only that release, or a newer one, may act on it"
	case e == RowResolved:
		return is + ", and only parked, dead and waiting messages can be resolved"
	case e == RowReopened:
		return is + ", and only discarded messages can be reopened"
	case e == RowRetried:
		if then := notRetried(r); then != "" {
			return is + then
		}
		return stateAlone(is)
	case e == RowReleased && !r.State.Ended():
		return is + ", and no process has claimed it; semel messages retry makes it due now"
	case e == RowReleased && r.State == store.StateParked, e == RowReleased && r.State == store.StateDeadLettered:
		return is + "; semel messages retry makes it due now"
	case e == RowSuppressed && r.State == store.StateInProgress:
		return is + ", so it may be sent already"
	case e == RowSuppressed && r.State == store.StateParked:
		return is + ", and is not sent unless semel intents retry sends it"
	}
	return stateAlone(is)
}

// stateAlone adds the text of semel.ErrState to a text that only names the state of a row.
func stateAlone(is string) string { return is + ": " + semel.ErrState.Error() }

// notRetried returns a text: why a row cannot be made due, and which command to use instead.
func notRetried(r *store.StoredRow) string {
	switch {
	case r.State == store.StateReceived:
		return ": it is due now, and a running consumer will process it"
	case r.State == store.StateInProgress:
		return ": a process has claimed it and works on it; semel messages release ends the claim of a process that hangs"
	case r.State == store.StateBlocked && r.Place > 0:
		return " behind another message of its key or partition; semel messages show names that message, and semel messages skip of that message unblocks this one"
	case r.State == store.StateBlocked:
		return fmt.Sprintf(" by an earlier version of stream %q; semel gaps shows which version is missing, and semel gaps skip continues without it", r.Stream)
	case r.State == store.StateDiscarded && r.Conflict && !r.Surrogate:
		return "; semel messages reopen parks it again, unless another content of its identity took effect"
	case r.State == store.StateDiscarded && !r.Surrogate:
		return "; semel messages reopen parks it again"
	}
	return ""
}

// neverRuns returns a text: why a row without a usable identity is not run again, and what to do.
func neverRuns(reason semel.Reason) string {
	switch reason {
	case semel.ReasonTooLarge:
		return "only its beginning was kept; raise max_body at the consumer, or the source's own limit, have it sent again, and discard this row"
	case reasonname.Filtered:
		return "the consumer's filter excludes it, so its identity was never read; if it belongs to the consumer, correct filter in the policy and have it sent again; discard this row"
	case semel.ReasonMalformed:
		return "the source could not read it; have it sent again in the format of the source, and discard this row"
	}
	return "without an identity Semel cannot process it exactly once; have it sent again with an identity, and discard this row"
}
