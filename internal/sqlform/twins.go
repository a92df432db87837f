package sqlform

import (
	"bytes"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Twin is one of several rows of an identity with different contents.
type Twin struct {
	Number   int64
	State    store.RowState
	Conflict bool
	// Version and Sum are the content of the row, in the form of a marker.
	Version int64
	Sum     []byte
	// Stepped: steps of the row took effect. UnknownOutcome: a call for it has an unknown
	// outcome.
	Stepped, UnknownOutcome bool
}

// Of reports whether a marker belongs to this row and not to one of the others: they have the
// same content. Two rows can have the same content, because a duplicate of the first message
// may arrive while a conflict owns the marker. Then the marker belongs to the row whose state
// matches its outcome, or else to the first content.
func (m Marker) Of(row Twin, others []Twin) bool {
	if !m.has(row) {
		return false
	}
	for _, o := range others {
		if !m.has(o) {
			continue
		}
		if tells := m.tells(row); tells != m.tells(o) {
			return tells
		}
		return !row.Conflict
	}
	return true
}

func (m Marker) has(row Twin) bool { return m.Version == row.Version && bytes.Equal(m.Sum, row.Sum) }

func (m Marker) tells(row Twin) bool { return m.Outcome == int64(row.State.Outcome()) }

// Returned returns the new marker of an identity after the row of a conflict that owned it was
// closed: the marker of the first content's row, or closed if there is no such row.
func Returned(closed Marker, others []Twin) Marker {
	for _, o := range others {
		if said := o.State.Outcome(); !o.Conflict && said != 0 {
			return Marker{Outcome: int64(said), Version: o.Version, Sum: o.Sum}
		}
	}
	return closed
}

// StoredTwins converts twins for admin.MayRun.
func StoredTwins(all []Twin) []store.StoredRow {
	rows := make([]store.StoredRow, len(all))
	for i, t := range all {
		rows[i] = store.StoredRow{Number: t.Number, State: t.State, Conflict: t.Conflict}
		if t.Stepped {
			rows[i].Steps = make([]store.StepDone, 1)
		}
		if t.UnknownOutcome {
			rows[i].CallsStarted = 1
		}
	}
	return rows
}

// Over returns how a claimed row must end if the marker of its identity does not wait for the
// row, and why; law 16 allows no other end. A zero event means that no other row waits, and
// that the row takes the marker.
func Over(marked bool, m Marker, own bool, others []Twin) (store.RowEvent, string) {
	switch {
	case !marked:
		return store.RowParked, "it was due but has no marker, so it is unknown whether its identity was processed"
	case m.Outcome == int64(store.Applied) && own && !slices.ContainsFunc(others, tookEffect):
		return store.RowCompleted, ""
	case m.Outcome == int64(store.Applied):
		return store.RowDiscarded, "another content of this identity was applied, so this one was discarded without an effect"
	case m.Outcome != int64(store.Waiting):
		return store.RowParked, "it was due, but the marker of its identity does not wait for it; retry or discard it"
	}
	for _, o := range others {
		if m.has(o) && o.State.Outcome() == store.Waiting {
			return store.RowParked, "another content of this identity waits and owns the marker; retry this row after the other has ended without an effect"
		}
	}
	return 0, ""
}

// tookEffect reports a row that completed. An earlier release could complete a row under the
// marker of another content.
func tookEffect(t Twin) bool { return t.State == store.StateCompleted }

// OverReason returns the reason for a row that Over ends; empty keeps its present reason.
func OverReason(e store.RowEvent) string {
	if e == store.RowCompleted {
		return ""
	}
	return string(semel.ReasonConflict)
}
