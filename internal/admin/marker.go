package admin

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// StoredMarker is the stored marker of an identity. Markers are small because they are kept for long, so
// they do not contain where the message came from.
type StoredMarker struct {
	Outcome store.Outcome
	// At is the time of the last change, by the store's clock.
	At time.Time
	// Fingerprint is the fingerprint of the marked content; zero if none is stored.
	Fingerprint semel.Fingerprint
}

// Owner returns the row of an identity to which its marker belongs, or nil if none of the rows
// has the marker's content. Of several rows with that content it is the one whose state the
// marker tells, or else the first content's.
func (m StoredMarker) Owner(rows []store.StoredRow) *store.StoredRow {
	var owner *store.StoredRow
	better := func(r *store.StoredRow) bool {
		if owner == nil {
			return true
		}
		tells, told := r.State.Outcome() == m.Outcome, owner.State.Outcome() == m.Outcome
		if tells != told {
			return tells
		}
		return owner.Conflict && !r.Conflict
	}
	for i := range rows {
		if r := &rows[i]; !r.Surrogate && r.Fingerprint == m.Fingerprint && better(r) {
			owner = r
		}
	}
	return owner
}
