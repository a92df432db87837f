package admin

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// StoredMarker is the stored marker of an identity. Markers are kept for a long time and must be small, so a marker
// does not contain the partition and offset of the message.
type StoredMarker struct {
	Outcome store.Outcome
	// At is the time of the last change, by the store's clock.
	At time.Time
	// Fingerprint is the fingerprint of the marked content, or zero if none is stored.
	Fingerprint semel.Fingerprint
}

// Owner returns the row to which the marker belongs, or nil if no row has the marker's content. If several rows have
// the content, Owner prefers a row whose state matches the marker's outcome, and then a row that is not a conflict.
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
