package memstore

import (
	"slices"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// cutAhead cuts the waits and the leases of rows that were written while the clock was ahead, of
// named ones or of all; the store's lock is held.
func (s *Store) cutAhead(o *store.ClaimOptions, now time.Time) {
	rows, furthest := 0, time.Duration(0)
	for _, r := range s.rows {
		if r.State.Outcome() != store.Waiting || r.waitsInLine() || len(o.Numbers) > 0 && !slices.Contains(o.Numbers, r.Number) {
			continue
		}
		if by := r.cutAhead(now); by > 0 {
			rows, furthest = rows+1, max(furthest, by)
		}
	}
	if rows > 0 && o.Ahead != nil {
		o.Ahead(rows, furthest)
	}
}

// cutAhead has a row that was changed in the future wait from now for as long as it waited from
// then, and returns how far in the future that was.
func (r *row) cutAhead(now time.Time) time.Duration {
	by := sqlform.CutAhead(r.ChangedAt, now, &r.DueAt, &r.LockedUntil)
	if by == 0 {
		return 0
	}
	r.ChangedAt, r.CalledAt = now, calls.Known(r.CalledAt, now)
	if r.ReceivedAt.After(now) {
		r.ReceivedAt = now
	}
	return by
}

// touchWaiting is touch for a row that waits as before: what was changed in the future stays so,
// because its wait is known by that.
func (s *Store) touchWaiting(r *row) {
	was := r.ChangedAt
	if s.touch(r); was.After(r.ChangedAt) {
		r.ChangedAt = was
	}
}
