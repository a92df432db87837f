package sqlform

import (
	"bytes"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Twin is one of several rows that have the same identity and different contents.
type Twin struct {
	Number   int64
	State    store.RowState
	Conflict bool
	// Version and Sum are the fingerprint of the row's content, as a marker stores it.
	Version int64
	Sum     []byte
	// Stepped means that some steps of the row were applied. UnknownOutcome means that the outcome of a call
	// for the row is unknown.
	Stepped, UnknownOutcome bool
}

// Of reports whether a marker belongs to the given row and not to another row of the identity. A marker belongs to a
// row with the same content. Two rows can have the same content, because a duplicate of the first message may arrive
// while a conflict owns the marker. If two rows have the same content, the marker belongs to the row whose state
// matches the marker's outcome. If no state matches, the marker belongs to the row of the first content.
func (m Marker) Of(row Twin, others []Twin) bool {
	if !m.has(row) {
		return false
	}
	for _, o := range others {
		if !m.has(o) {
			continue
		}
		if tells := m.matchesRow(row); tells != m.matchesRow(o) {
			return tells
		}
		return !row.Conflict
	}
	return true
}

func (m Marker) has(row Twin) bool { return m.Version == row.Version && bytes.Equal(m.Sum, row.Sum) }

func (m Marker) matchesRow(row Twin) bool { return m.Outcome == int64(row.State.Outcome()) }

// Returned returns the new marker of an identity after an operator has closed the row of a conflict that owned the
// marker. The result is the marker of the first content's row. If the first content has no row, the result is the
// parameter closed.
func Returned(closed Marker, others []Twin) Marker {
	for _, o := range others {
		if said := o.State.Outcome(); !o.Conflict && said != 0 {
			return Marker{Outcome: int64(said), Version: o.Version, Sum: o.Sum}
		}
	}
	return closed
}

// StoredTwins converts twins to the type of admin.MayRun.
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

// Over is called for a claimed row if the marker of its identity does not wait for this row. Over returns the state in
// which the claimed row must end, and the reason. Law 16 allows no other end. An empty state means that no other row
// waits, and that the claimed row takes the marker.
func Over(marked bool, m Marker, own bool, others []Twin) (store.RowState, string) {
	switch {
	case !marked:
		return store.StateParked, "it was due but has no marker, so it is unknown whether its identity was processed"
	case m.Outcome == int64(store.Applied) && own && !slices.ContainsFunc(others, tookEffect):
		return store.StateCompleted, ""
	case m.Outcome == int64(store.Applied):
		return store.StateDiscarded, "another content of this identity was applied, so this one was discarded without an effect"
	case m.Outcome != int64(store.Waiting):
		return store.StateParked, "it was due, but the marker of its identity does not wait for it; retry or discard it"
	}
	for _, o := range others {
		if m.has(o) && o.State.Outcome() == store.Waiting {
			return store.StateParked, "another content of this identity waits and owns the marker; retry this row after the other has ended without an effect"
		}
	}
	return "", ""
}

// tookEffect reports whether a row was applied. An earlier release could apply a row although the marker
// belonged to another content.
func tookEffect(t Twin) bool { return t.State == store.StateCompleted }

// OverReason returns the reason of a row that Over ends. An empty reason means that the row keeps its reason.
func OverReason(state store.RowState) string {
	if state == store.StateCompleted {
		return ""
	}
	return string(semel.ReasonConflict)
}
