package contract

import (
	"fmt"

	"github.com/semel-go/semel"
)

// openError says which row stands in the way of another one of its identity.
type openError string

func (e openError) Error() string { return string(e) }
func (openError) Unwrap() error   { return ErrOpen }

// MayRun is nil if a row may be worked on beside the other rows of its identity, each of which
// has another content: none of them is completed, waits or is worked on, and none that is not
// closed may have taken effect in part. Otherwise it is a semel.ErrConflict, with ErrOpen unless
// another content is applied, that says which row stands in the way and what to do. marker is
// what the marker of the identity says, 0 if there is none; own says that the marker belongs to
// the row itself.
func MayRun(number int64, marker Outcome, own bool, others []StoredRow) error {
	for i := range others {
		if err := others[i].lets(number); err != nil {
			return err
		}
	}
	switch {
	case marker == Applied && own:
		return fmt.Errorf("row %d: its own content is applied, so that the row is over and can be discarded: %w", number, semel.ErrConflict)
	case marker == Applied:
		return fmt.Errorf("row %d: %w", number, semel.ErrConflict)
	case marker == Waiting && !own:
		return openError(fmt.Sprintf("row %d: another content of its identity waits, and may take effect; wait until it has ended", number))
	}
	return nil
}

// lets is nil if another row of its identity may be worked on beside this one.
func (r *StoredRow) lets(number int64) error {
	switch state := r.State; {
	case state == StateDiscarded:
		return nil
	case state == StateCompleted:
		return fmt.Errorf("row %d: row %d has the content that took effect: %w", number, r.Number, semel.ErrConflict)
	case state.Outcome() == Waiting, !state.Known():
		return openError(fmt.Sprintf("row %d: row %d has another content of its identity, is %s, and may take effect; wait until it has ended, or discard it first", number, r.Number, state))
	case r.UnknownOutcome():
		return openError(fmt.Sprintf("row %d: row %d has another content of its identity, and nobody knows whether a call for it took effect; find out, and resolve or discard that row first", number, r.Number))
	case len(r.Steps) > 0:
		return openError(fmt.Sprintf("row %d: row %d has another content of its identity, and steps of it took effect; retry or discard that row first", number, r.Number))
	}
	return nil
}
