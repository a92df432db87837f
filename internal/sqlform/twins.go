package sqlform

import (
	"bytes"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Twin is one of several rows of an identity, each of which has a content of its own.
type Twin struct {
	Number   int64
	State    store.RowState
	Conflict bool
	// Version and Sum are its content, as its marker would have it.
	Version int64
	Sum     []byte
	// Stepped says that steps of it took effect, UnknownOutcome that nobody knows what became
	// of a call for it.
	Stepped, UnknownOutcome bool
}

// Of reports whether a marker belongs to one of the rows of its identity, beside the others: it
// has that row's content. Of two rows with that content, since a copy of the first one came
// while a conflict had the marker, it belongs to the one whose state it tells, or to the first.
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

// Returned is what the marker of an identity says once the row of a conflict that had it is
// closed: what the row of the first content says, or closed where there is none.
func Returned(closed Marker, others []Twin) Marker {
	for _, o := range others {
		if said := o.State.Outcome(); !o.Conflict && said != 0 {
			return Marker{Outcome: int64(said), Version: o.Version, Sum: o.Sum}
		}
	}
	return closed
}

// StoredTwins are twins as admin.MayRun asks for them.
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

// Over is what becomes of a row that was claimed although the marker of its identity does not wait
// for it, and why, for people: no claim of such a row can end otherwise (law 16). Zero: no other
// row waits, and the row takes the marker.
func Over(marked bool, m Marker, own bool, others []Twin) (store.RowEvent, string) {
	switch {
	case !marked:
		return store.RowParked, "it was due and has no marker, so that nobody can tell what became of its identity"
	case m.Outcome == int64(store.Applied) && own && !slices.ContainsFunc(others, tookEffect):
		return store.RowCompleted, ""
	case m.Outcome == int64(store.Applied):
		return store.RowDiscarded, "another content of this identity was applied, so that this one is over and had no effect"
	case m.Outcome != int64(store.Waiting):
		return store.RowParked, "it was due although the marker of its identity does not wait for it; retry or discard it"
	}
	for _, o := range others {
		if m.has(o) && o.State.Outcome() == store.Waiting {
			return store.RowParked, "another content of this identity waits and has its marker; retry this one when that has ended without an effect"
		}
	}
	return 0, ""
}

// tookEffect: an earlier release let a row end with the marker of another content.
func tookEffect(t Twin) bool { return t.State == store.StateCompleted }

// OverReason is the reason that such a row gets; empty leaves the one that it has.
func OverReason(e store.RowEvent) string {
	if e == store.RowCompleted {
		return ""
	}
	return string(semel.ReasonConflict)
}
