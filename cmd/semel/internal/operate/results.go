package operate

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// retryResult returns the result of a retry according to the row's state.
func retryResult(r store.StoredRow) (result, why string) {
	switch r.State {
	case store.StateCompleted:
		return Done, ""
	case store.StateDiscarded:
		return Discarded, cmp.Or(r.LastError, "it was discarded meanwhile, without an effect")
	case store.StateReceived, store.StateInProgress:
		return Due, ""
	case store.StateBlocked:
		return Waits, "for an earlier version of its stream; semel gaps shows which"
	case store.StateFailedRetryable:
		if wait := r.DueAt.Sub(r.ChangedAt); wait > 0 {
			return Waits, fmt.Sprintf("for %v after attempt %d: %s", wait.Round(time.Second), r.Attempts, r.LastError)
		}
		return Due, ""
	}
	return Failed, r.LastError
}

// undo returns the command that undoes the change of a row, or "" if no command is certain to undo the
// change. A conflict cannot be reopened if its first content has taken effect.
func (o Order) undo(row store.StoredRow) admin.Verb {
	switch o.Verb {
	case admin.Suppress:
		return admin.Send
	case admin.Reopen:
		return admin.Discard
	case admin.Discard:
		row.State = store.StateDiscarded
		if !row.Conflict && admin.Reopen.May(&row, false) == nil {
			return admin.Reopen
		}
	}
	return ""
}

// withError returns the result of a command for its error err. If err is nil, the result is none.
func (r Result) withError(err error, none string) Result {
	if err == nil {
		r.Result = none
		return r
	}
	if errors.Is(err, admin.ErrDueAlready) && r.previousState != store.StateReceived { // the row already has the requested state
		r.Result, r.Error = Due, "it was due before; nothing is recorded"
		return r
	}
	r.Result, r.Error = resultOf(err), plainOf(r.Number, err)
	if errors.Is(err, semel.ErrConflict) && !errors.Is(err, admin.ErrOpen) {
		then := "discard this row"
		if r.previousState == store.StateDiscarded {
			then = "leave this row discarded"
		}
		r.Error += conflictAdvice + then
	}
	return r
}

// conflictAdvice starts the advice about a conflict.
const conflictAdvice = "; find out from the producer which content is right; if it is this one, correct the effect by hand; then "
