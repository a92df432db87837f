package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Requeue implements admin.Requeuer.
func (s *Store) Requeue(ctx context.Context, number, revision int64, a store.Act) error {
	return s.answer("retry", s.again(ctx, number, revision, store.RowRetried, a))
}

// Release implements admin.Requeuer.
func (s *Store) Release(ctx context.Context, number, revision int64, a store.Act) error {
	return s.answer("release", s.again(ctx, number, revision, store.RowReleased, a))
}

// again lets a row be worked on again.
func (s *Store) again(ctx context.Context, number, revision int64, e store.RowEvent, a store.Act) error {
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		next, legal := r.state.After(e)
		switch {
		case !legal:
			return fmt.Errorf("row %d is %s: %w", number, r.state, semel.ErrState)
		case r.state.Outcome() == store.Waiting && r.state != store.StateInProgress && r.due:
			return fmt.Errorf("row %d: %w", number, admin.ErrDueAlready)
		}
		if err := s.mayRequeue(ctx, tx, number, e); err != nil {
			return err
		}
		if err := s.readTwins(ctx, tx, r); err != nil {
			return err
		}
		if err := s.takeMarker(ctx, tx, r, r.others); err != nil {
			return err
		}
		if err := s.set(ctx, tx, r, s.sql.Requeue, string(next)); err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, "done")
	})
}

// Reopen implements admin.Requeuer.
func (s *Store) Reopen(ctx context.Context, number, revision int64, a store.Act) error {
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	return s.answer("reopen", s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		var reason semel.Reason
		var unknown, bodiless bool
		if err := tx.QueryRowContext(ctx, s.sql.Reopenable, number).Scan(&reason, &unknown, &bodiless); err != nil {
			return err
		}
		if err := admin.MayReopen(number, r.state, reason, unknown, bodiless); err != nil {
			return err
		}
		if err := s.readTwins(ctx, tx, r); err != nil {
			return err
		}
		if err := r.mayRun(r.others); err != nil {
			return err
		}
		if !r.marked && len(r.conflict) == 0 {
			return noMarker(number)
		}
		if err := s.set(ctx, tx, r, s.sql.ReopenRow, string(admin.ReopenedReason(reason))); err != nil {
			return err
		}
		if err := s.turnMarker(ctx, tx, r, sqlform.Marker{Outcome: int64(store.Parked), Version: r.version, Sum: r.sum}); err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, "done")
	}))
}

// noMarker refuses to have a row worked on of whose identity nobody knows what became.
func noMarker(number int64) error {
	return fmt.Errorf("row %d has no marker, and what became of its identity is not known: %w", number, semel.ErrConflict)
}

// takeMarker has the marker of a row's identity belong to the row, and say that it waits. It
// refuses that beside others of which one is open; see admin.MayRun.
func (s *Store) takeMarker(ctx context.Context, tx *sql.Tx, r *actedRow, others []sqlform.Twin) error {
	if r.state.Outcome() == store.Waiting && r.owns && r.outcome == store.Waiting {
		return nil
	}
	if err := r.mayRun(others); err != nil {
		return err
	}
	var done sql.Result
	var err error
	if r.marked {
		done, err = tx.ExecContext(ctx, s.sql.WaitAgain, r.version, r.sum, r.scope, r.id)
	} else { // of a conflict with a former identity nothing was marked, and no lock keeps others from it
		done, err = tx.ExecContext(ctx, s.sql.WaitAnew, r.number, string(semel.ReasonFormerConflict))
	}
	var n int64
	if err == nil {
		n, err = done.RowsAffected()
	}
	if err != nil || n != 1 {
		return errors.Join(noMarker(r.number), err)
	}
	r.owns, r.outcome = true, store.Waiting
	r.marker = sqlform.Marker{Outcome: int64(store.Waiting), Version: r.version, Sum: r.sum}
	return nil
}
