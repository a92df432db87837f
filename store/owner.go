package store

// Owner returns the row of an identity to which its marker belongs, or nil if none of the rows
// has the marker's content. Of several rows with that content it is the one whose state the
// marker tells, or else the first content's.
func (m StoredMarker) Owner(rows []StoredRow) *StoredRow {
	var owner *StoredRow
	better := func(r *StoredRow) bool {
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
