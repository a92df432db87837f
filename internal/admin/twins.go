package admin

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// refuseOpen returns an error that wraps ErrOpen. The text of the error names the row that prevents another row of the
// same identity from being processed.
func refuseOpen(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), ErrOpen}
}

// MayRun returns nil if a row may be processed although its identity has other rows, each with other content. A row may
// be processed if no other row is completed, waiting or in progress, no other row was applied in part, and no open row
// has an unknown outcome. If the row may not be processed, the error wraps semel.ErrConflict, and also ErrOpen unless
// another content was applied. The error names the row that prevents processing, and the remedy. The parameter marker
// is the outcome of the identity's marker, or 0 if there is no marker. The parameter own means that the marker belongs
// to the row itself.
func MayRun(number int64, marker store.Outcome, own bool, others []store.StoredRow) error {
	for i := range others {
		if err := lets(&others[i], number); err != nil {
			return err
		}
	}
	switch {
	case marker == store.Applied && own:
		return fmt.Errorf("row %d: its own content is applied already, so there is nothing to do: %w", number, semel.ErrConflict)
	case marker == store.Applied:
		return fmt.Errorf("row %d: %w", number, semel.ErrConflict)
	case marker == store.Waiting && !own:
		return refuseOpen("row %d: another content of its identity waits and may take effect; wait until that row has ended", number)
	}
	return nil
}

// lets returns nil if the row r does not prevent another row of the same identity from being processed. The parameter
// number is the number of the other row.
func lets(r *store.StoredRow, number int64) error {
	switch state := r.State; {
	case state == store.StateCompleted:
		return fmt.Errorf("row %d: row %d has the content that took effect: %w", number, r.Number, semel.ErrConflict)
	case state.Outcome() == store.Waiting, !state.Known():
		return refuseOpen("row %d: row %d has another content of its identity, is %s, and may take effect; wait until that row has ended, or discard it first", number, r.Number, state)
	case state == store.StateDiscarded && len(r.Steps) > 0:
		return refuseOpen("row %d: row %d has another content of its identity, and steps of it took effect before it was discarded; reopen and retry that row, or have this message sent again under another identity", number, r.Number)
	case state == store.StateDiscarded:
		return nil
	case r.UnknownOutcome():
		return refuseOpen("row %d: row %d has another content of its identity, and it is unknown whether a call for it took effect; find out, and resolve or discard that row first", number, r.Number)
	case len(r.Steps) > 0:
		return refuseOpen("row %d: row %d has another content of its identity, and steps of it took effect; retry that row", number, r.Number)
	}
	return nil
}

// ReasonReopened is the reason of a reopened row that has no other reason to be parked.
const ReasonReopened semel.Reason = "reopened"

// ReopenedReason returns the reason of a reopened row. The parameter was is the reason before. A reason of a gap or of
// a queue is replaced: a row with one of these reasons is unblocked automatically, but a reopened row must wait for an
// operator.
func ReopenedReason(was semel.Reason) semel.Reason {
	switch was {
	case reasonname.None, semel.ReasonGap, reasonname.Behind:
		return ReasonReopened
	}
	return was
}
