package why

import (
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// An identity can have several rows with different contents. The marker of the identity belongs to one of its
// rows (law 16). The answer follows from the row that the marker belongs to.

// owner returns the row that the marker of the identity belongs to. If there is no marker, owner returns the
// row that was applied, else a waiting row, else the row with the first content. owner returns nil if the
// row was removed.
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

// others returns the rows that have another content than the row of the answer.
func (f *Facts) others() (all []store.StoredRow) {
	owner := f.owner()
	for _, r := range f.Conflicts {
		if owner == nil || r.Number != owner.Number {
			all = append(all, r)
		}
	}
	return all
}

// withDoubtOfOthers returns the answer a. If a call of another content has an unknown outcome, withDoubtOfOthers
// changes the field Applied from No to Unknown.
func withDoubtOfOthers(others []store.StoredRow, a Answer) Answer {
	for i := range others {
		a = withDoubt(&others[i], a)
	}
	return a
}

// isAtRest reports whether the row has no effect and is parked, dead-lettered or discarded.
func isAtRest(r *store.StoredRow) bool {
	o := r.State.Outcome()
	return o == store.Parked || o == store.DeadLettered || o == store.Discarded
}

// isSupplanted reports whether the marker belongs to a content that has no row, although the first
// content has a row.
func (f *Facts) isSupplanted() bool {
	m := f.marker()
	return m != nil && f.Row != nil && f.owner() == nil && isAtRest(f.Row) && m.Fingerprint.Conflicts(f.Row.Fingerprint)
}

// explainUnrecordedOwner returns the answer if the marker belongs to a content without a row.
func (f *Facts) explainUnrecordedOwner(r *store.StoredRow) Answer {
	m := f.marker()
	a := Answer{Stage: StageConflict, Applied: No, Do: []Command{f.showCommand(r)}}
	if m.Outcome == store.Applied {
		a.Applied = Yes
	}
	a.Says = fmt.Sprintf("%s Other content of its identity is %s since %s and has no row.", f.firstContentText(), outcomeText(m.Outcome), moment(m.At))
	return a
}

// firstContentText returns a sentence that says what became of the first content of the identity. The sentence is for
// answers about an identity whose marker was written for another content.
func (f *Facts) firstContentText() string {
	switch r := f.Row; {
	case r == nil:
		return "The first content has no row any more."
	case r.State == store.StateCompleted:
		return fmt.Sprintf("The first content was applied: row %d.", r.Number)
	case r.UnknownOutcome():
		return fmt.Sprintf("It is unknown whether the first content was applied: row %d is %s%s.", r.Number, admin.StateOf(r.State), ofReason(r))
	default:
		return fmt.Sprintf("The first content was not applied: row %d is %s%s.", r.Number, admin.StateOf(r.State), ofReason(r))
	}
}

// explainReleased returns the answer if the marker belongs to a row whose content conflicts with the first content.
func (f *Facts) explainReleased(r *store.StoredRow) Answer {
	a := withDoubt(r, f.explainRow(r))
	a.Says = fmt.Sprintf("%s Other content of its identity, row %d, was released for processing: %s", f.firstContentText(), r.Number, a.Says)
	a.Do = append(a.Do, f.showCommand(r))
	if f.Row != nil {
		a.Do = append(a.Do, f.showCommand(f.Row))
	}
	return a
}

// effectOf returns a text about the effect of the row.
func effectOf(r *store.StoredRow) string {
	switch {
	case r.State == store.StateCompleted:
		return "took effect"
	case r.UnknownOutcome():
		return "may have taken effect, because a call has an unknown outcome"
	case len(r.Steps) > 0:
		return fmt.Sprintf("took effect up to its step %s", r.Steps[len(r.Steps)-1].Name)
	case r.State.Outcome() == store.Waiting:
		return "has had no effect yet"
	}
	return "had no effect"
}
