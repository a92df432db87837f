package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Requeue implements admin.Requeuer.
func (s *Store) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.again(ctx, "retry", store.RowRetried, a, rows)
}

// Release implements admin.Requeuer.
func (s *Store) Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return s.again(ctx, "release", store.RowReleased, a, rows)
}

// again makes rows due now.
func (s *Store) again(ctx context.Context, verb string, e store.RowEvent, a store.Act, rows []store.RowRevision) []error {
	judge := func(r *actedRow) error {
		if err := admin.MayAct(e, r.stored(), r.due); err != nil {
			return err
		}
		return r.mayTakeMarker(r.others)
	}
	change := func(ctx context.Context, s *Store, tx *sql.Tx, rows []*actedRow) error {
		if err := s.takeMarkers(ctx, tx, rows...); err != nil {
			return err
		}
		return s.setGrouped(ctx, tx, rows, s.sql.RequeueRows, func(r *actedRow) string {
			next, _ := r.state.After(e)
			return string(next)
		})
	}
	of := acting{verb: verb, act: a, rows: rows, judge: judge, change: change}
	return of.carry(ctx, s)
}

// stored is the row as the rules about acts ask for it.
func (r *actedRow) stored() *store.StoredRow {
	row := &store.StoredRow{Number: r.number, Revision: r.revision, State: r.state, Reason: r.reason, Conflict: len(r.conflict) > 0,
		BodyRemoved: r.bodiless, Stream: string(r.stream), Place: r.place}
	if r.unknown {
		row.CallsStarted = 1
	}
	return row
}

// Reopen implements admin.Requeuer.
func (s *Store) Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	of := acting{verb: "reopen", act: a, rows: rows, change: reopen, judge: func(r *actedRow) error {
		if err := admin.MayAct(store.RowReopened, r.stored(), r.due); err != nil {
			return err
		}
		if err := r.mayRun(r.others); err != nil {
			return err
		}
		if !r.marked && len(r.conflict) == 0 {
			return noMarker(r.number)
		}
		return nil
	}}
	return of.carry(ctx, s)
}

func reopen(ctx context.Context, s *Store, tx *sql.Tx, rows []*actedRow) error {
	err := s.setGrouped(ctx, tx, rows, s.sql.ReopenRows, func(r *actedRow) string {
		if reason := admin.ReopenedReason(r.reason); reason != r.reason {
			return string(reason)
		}
		return "" // it keeps its reason
	})
	if err != nil {
		return err
	}
	return s.turnAll(ctx, tx, rows, store.Parked)
}

// errNoMarker refuses to process a row whose identity has no marker.
var errNoMarker = fmt.Errorf("it has no marker, and what became of its identity is not known: %w", semel.ErrConflict)

func noMarker(number int64) error { return fmt.Errorf("row %d: %w", number, errNoMarker) }

// waits reports whether a row waits and its marker waits for it.
func (r *actedRow) waits() bool {
	return r.state.Outcome() == store.Waiting && r.owns && r.outcome == store.Waiting
}

// formerConflict reports whether a row is a conflict with a former identity: its own identity was never
// marked, so that it may have no marker.
func (r *actedRow) formerConflict() bool {
	return len(r.conflict) > 0 && r.reason == semel.ReasonFormerConflict
}

// mayTakeMarker returns why the marker of a row's identity must not wait for the row beside these others; see
// admin.MayRun.
func (r *actedRow) mayTakeMarker(others []sqlform.Twin) error {
	if r.waits() {
		return nil
	}
	if err := r.mayRun(others); err != nil {
		return err
	}
	if !r.marked && !r.formerConflict() {
		return noMarker(r.number)
	}
	return nil
}

// takeMarkers has the markers of rows wait for the rows, which mayTakeMarker allows.
func (s *Store) takeMarkers(ctx context.Context, tx *sql.Tx, rows ...*actedRow) error {
	var marked, bare []*actedRow
	for _, r := range rows {
		switch {
		case r.waits():
			continue
		case r.marked:
			marked = append(marked, r)
		default:
			bare = append(bare, r) // no lock keeps others from marking it
		}
	}
	if len(marked) > 0 {
		if err := s.changeAll(ctx, tx, numbersOf(marked), errNoMarker, s.sql.MarkersWait, actedRows(marked...)); err != nil {
			return err
		}
	}
	if len(bare) > 0 {
		if err := s.changeAll(ctx, tx, numbersOf(bare), errNoMarker, s.sql.NewMarkersWait, actedRows(bare...), string(semel.ReasonFormerConflict)); err != nil {
			return err
		}
	}
	for _, r := range slices.Concat(marked, bare) {
		r.owns, r.outcome = true, store.Waiting
		r.marker = sqlform.Marker{Outcome: int64(store.Waiting), Version: r.version, Sum: r.sum}
	}
	return nil
}
