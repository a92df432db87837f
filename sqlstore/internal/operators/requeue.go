package operators

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// Requeue implements admin.Requeuer.
func (s *Store) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return requeueNow(ctx, s.db, "retry", admin.RowRetried, a, rows)
}

// Release implements admin.Requeuer.
func (s *Store) Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return requeueNow(ctx, s.db, "release", admin.RowReleased, a, rows)
}

// requeueNow schedules rows to run now.
func requeueNow(ctx context.Context, db *database.DB, verb string, e admin.RowEvent, a store.Act, rows []store.RowRevision) []error {
	judge := func(r *actedRow) error {
		if err := admin.MayAct(e, r.toStoredRow(), r.due); err != nil {
			return err
		}
		return r.mayTakeMarker(r.Others)
	}
	change := func(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
		if err := takeMarkers(ctx, s, tx, rows...); err != nil {
			return err
		}
		return setGrouped(ctx, tx, rows, s.SQL.RequeueRows, func(r *actedRow) string {
			next, _ := admin.After(r.state, e)
			return string(next)
		})
	}
	of := rowChange{verb: verb, act: a, rows: rows, judge: judge, change: change}
	return of.apply(ctx, db)
}

// toStoredRow converts the row for functions of package admin that check operators' changes.
func (r *actedRow) toStoredRow() *store.StoredRow {
	row := &store.StoredRow{Number: r.Number, Revision: r.revision, State: r.state, Reason: r.reason, Conflict: len(r.conflict) > 0,
		BodyRemoved: r.bodiless, Stream: string(r.stream), Place: r.lanePosition}
	if r.unknown {
		row.CallsStarted = 1
	}
	return row
}

// Reopen implements admin.Requeuer.
func (s *Store) Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	of := rowChange{verb: "reopen", act: a, rows: rows, change: reopen, judge: func(r *actedRow) error {
		if err := admin.MayAct(admin.RowReopened, r.toStoredRow(), r.due); err != nil {
			return err
		}
		if err := r.mayRun(r.Others); err != nil {
			return err
		}
		if !r.Marked && len(r.conflict) == 0 {
			return noMarkerError(r.Number)
		}
		return nil
	}}
	return of.apply(ctx, s.db)
}

func reopen(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
	err := setGrouped(ctx, tx, rows, s.SQL.ReopenRows, func(r *actedRow) string {
		if reason := admin.ReopenedReason(r.reason); reason != r.reason {
			return string(reason)
		}
		return "" // the row keeps its reason
	})
	if err != nil {
		return err
	}
	return turnAll(ctx, s, tx, rows, store.Parked)
}

// errNoMarker is the error for a row whose identity has no marker, so that the row must not be processed.
var errNoMarker = fmt.Errorf("it has no marker, so the outcome of its identity is unknown: %w", semel.ErrConflict)

func noMarkerError(number int64) error { return fmt.Errorf("row %d: %w", number, errNoMarker) }

// isWaiting reports whether a row waits, and its identity has a waiting marker that belongs to the row.
func (r *actedRow) isWaiting() bool {
	return r.state.Outcome() == store.Waiting && r.Owns && r.Outcome == store.Waiting
}

// formerConflict reports whether a row is a conflict with a previous identity. The row of this conflict may have no
// marker, because no marker was written for its own identity.
func (r *actedRow) formerConflict() bool {
	return len(r.conflict) > 0 && r.reason == reasonname.FormerConflict
}

// mayTakeMarker returns an error if the row must not get a waiting marker because of the other rows of its
// identity; see admin.MayRun.
func (r *actedRow) mayTakeMarker(others []sqlform.Twin) error {
	if r.isWaiting() {
		return nil
	}
	if err := r.mayRun(others); err != nil {
		return err
	}
	if !r.Marked && !r.formerConflict() {
		return noMarkerError(r.Number)
	}
	return nil
}

// takeMarkers writes a marker with the outcome Waiting for each given row. For each row, mayTakeMarker must have
// returned nil before.
func takeMarkers(ctx context.Context, db *database.DB, tx *sql.Tx, rows ...*actedRow) error {
	var marked, bare []*actedRow
	for _, r := range rows {
		switch {
		case r.isWaiting():
			continue
		case r.Marked:
			marked = append(marked, r)
		default:
			bare = append(bare, r) // no lock prevents other transactions from writing a marker
		}
	}
	if len(marked) > 0 {
		if err := changeAll(ctx, tx, numbersOf(marked), errNoMarker, db.SQL.MarkersWait, ActedRows(marked...)); err != nil {
			return err
		}
	}
	if len(bare) > 0 {
		if err := changeAll(ctx, tx, numbersOf(bare), errNoMarker, db.SQL.NewMarkersWait, ActedRows(bare...), string(reasonname.FormerConflict)); err != nil {
			return err
		}
	}
	for _, r := range slices.Concat(marked, bare) {
		r.Owns, r.Outcome = true, store.Waiting
		r.Marker = sqlform.Marker{Outcome: int64(store.Waiting), Version: r.version, Sum: r.sum}
	}
	return nil
}

// Suppress implements admin.Requeuer.
func (s *Store) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MayAct(admin.RowSuppressed, r.toStoredRow(), r.due) }
	change := func(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
		if err := setAll(ctx, tx, rows, s.SQL.SuppressRows, string(reasonname.Suppressed)); err != nil {
			return err
		}
		return turnAll(ctx, s, tx, rows, store.Parked)
	}
	of := rowChange{verb: "suppress", act: a, rows: rows, judge: judge, change: change}
	return of.apply(ctx, s.db)
}

// Discard implements store.Inbox.
func (s *Store) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MayAct(admin.RowDiscarded, r.toStoredRow(), r.due) }
	of := rowChange{verb: "discard", act: a, rows: rows, judge: judge, change: discard}
	return of.apply(ctx, s.db)
}

// discard closes rows and their markers, and unblocks the next rows in their lanes.
func discard(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
	if err := setAll(ctx, tx, rows, s.SQL.DiscardRows); err != nil {
		return err
	}
	turns := make([]turn, len(rows))
	for k, r := range rows {
		turns[k] = r.closedTurn()
	}
	if err := turnMarkers(ctx, s, tx, turns...); err != nil {
		return err
	}
	return ordering.LeaveLines(ctx, s, tx, firstOfLines(rows))
}
