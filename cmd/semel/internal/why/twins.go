package why

import (
	"fmt"

	"github.com/semel-go/semel/store"
)

// Several rows may stand under one identity, each with a content of its own, and the marker
// belongs to one of them (law 16). What is said of the message follows from that row.

// owner is the row to which the identity's marker belongs. Without a marker it is the row that
// took effect, or waits, or that of the first content. It is nil where no such row is kept.
func (f *Facts) owner() *store.StoredRow {
	rows := f.Rows()
	if m := f.marker(); m != nil {
		if owner := m.Owner(rows); owner != nil || len(f.Markers) == 1 {
			return owner
		}
		return f.Row
	}
	for _, outcome := range []store.Outcome{store.Applied, store.Waiting} {
		for i := range rows {
			if rows[i].State.Outcome() == outcome {
				return &rows[i]
			}
		}
	}
	return f.Row
}

// others are rows of other contents than the one that the answer is about.
func (f *Facts) others() (all []store.StoredRow) {
	owner := f.owner()
	for _, r := range f.Conflicts {
		if owner == nil || r.Number != owner.Number {
			all = append(all, r)
		}
	}
	return all
}

// doubtedByOthers is an answer about the identity, which does not deny the effect of another
// content's call whose outcome is unknown.
func doubtedByOthers(others []store.StoredRow, a Answer) Answer {
	for i := range others {
		a = doubted(&others[i], a)
	}
	return a
}

// atRest reports whether a row is over, or waits for an operator, without an effect.
func atRest(r *store.StoredRow) bool {
	o := r.State.Outcome()
	return o == store.Parked || o == store.DeadLettered || o == store.Discarded
}

// supplanted reports whether the marker belongs to another content than that of the first row,
// and no row of it is kept.
func (f *Facts) supplanted() bool {
	m := f.marker()
	return m != nil && f.Row != nil && f.owner() == nil && atRest(f.Row) && m.Fingerprint.Conflicts(f.Row.Fingerprint)
}

// bySupplanter is the answer where the marker belongs to a content of which no row is kept.
func (f *Facts) bySupplanter(r *store.StoredRow) Answer {
	m := f.marker()
	a := Answer{Stage: StageConflict, Applied: No, Do: []Command{f.show(r)}}
	if m.Outcome == store.Applied {
		a.Applied = Yes
	}
	a.Says = fmt.Sprintf("%s Another content of its identity is %s since %s, and no row of that is kept.", f.ofFirst(), named(m.Outcome), moment(m.At))
	return a
}

// ofFirst says what became of the content that came first, where another one has the marker.
func (f *Facts) ofFirst() string {
	switch r := f.Row; {
	case r == nil:
		return "Of the content that came first no row is kept."
	case r.State == store.StateCompleted:
		return fmt.Sprintf("The content that came first was applied: row %d.", r.Number)
	case r.UnknownOutcome():
		return fmt.Sprintf("Nobody knows whether the content that came first was applied: row %d is %s%s.", r.Number, r.State, ofReason(r))
	default:
		return fmt.Sprintf("The content that came first was not applied: row %d is %s%s.", r.Number, r.State, ofReason(r))
	}
}

// letRun is the answer where the marker belongs to the row of a conflict.
func (f *Facts) letRun(r *store.StoredRow) Answer {
	a := doubted(r, f.ofRow(r))
	a.Says = fmt.Sprintf("%s Another content of its identity, row %d, was let run: %s", f.ofFirst(), r.Number, a.Says)
	a.Do = append(a.Do, f.show(r))
	if f.Row != nil {
		a.Do = append(a.Do, f.show(f.Row))
	}
	return a
}

// effectOf says whether the content of a row took effect.
func effectOf(r *store.StoredRow) string {
	switch {
	case r.State == store.StateCompleted:
		return "took effect"
	case r.UnknownOutcome():
		return "may have taken effect, since what became of a call for it is unknown"
	case len(r.Steps) > 0:
		return fmt.Sprintf("took effect up to its step %s", r.Steps[len(r.Steps)-1].Name)
	case r.State.Outcome() == store.Waiting:
		return "has had no effect yet"
	}
	return "had no effect"
}
