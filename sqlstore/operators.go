package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// actedRow is a row as an operator's act finds it.
type actedRow struct {
	number, revision, scope int64
	state                   store.RowState
	outcome                 store.Outcome // of its marker; parked if there is none
	version                 int64
	id, conflict, sum       []byte
	due                     bool
	// marked is whether there is a marker, marker its content; others are the other rows of
	// the identity, and owns whether the marker belongs to this row. See Store.readTwins.
	marked bool
	marker sqlform.Marker
	others []sqlform.Twin
	owns   bool
}

// look reads the row that an act is about, in the act's transaction.
func (s *Store) look(ctx context.Context, tx *sql.Tx, number, revision int64) (*actedRow, error) {
	r := &actedRow{number: number}
	found := sqlform.Acted{Number: number, Inbox: s.sql.Inbox, Markers: s.sql.Markers}
	err := tx.QueryRowContext(ctx, s.sql.State, number).Scan(&r.revision, &found.State, &r.scope, &r.id, &r.conflict, &r.version, &r.sum, &r.due)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && r.revision != revision:
		return nil, fmt.Errorf("row %d: %w", number, semel.ErrChanged)
	case err != nil:
		return nil, err
	}
	found.Outcome = int64(store.Parked)
	err = tx.QueryRowContext(ctx, s.sql.RowMarker, number).Scan(&found.Outcome, &r.marker.Version, &r.marker.Sum)
	if r.marked = err == nil; err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	r.state, err = found.Understood()
	r.outcome = store.Outcome(found.Outcome)
	return r, err
}

// readTwins reads the other rows of a row's identity, once the row and its marker are locked, and
// finds out whether the marker belongs to this row (law 16).
func (s *Store) readTwins(ctx context.Context, tx *sql.Tx, r *actedRow) error {
	r.others = nil
	err := eachRow(ctx, tx, s.sql.Twins, func(rows *sql.Rows) error {
		var t sqlform.Twin
		var state string
		err := rows.Scan(&t.Number, &state, &t.Conflict, &t.Version, &t.Sum, &t.Stepped, &t.UnknownOutcome)
		t.State = store.RowState(state)
		r.others = append(r.others, t)
		return err
	}, []any{r.number})
	r.marker.Outcome = int64(r.outcome)
	own := sqlform.Twin{Number: r.number, State: r.state, Conflict: len(r.conflict) > 0, Version: r.version, Sum: r.sum}
	r.owns = r.marked && r.marker.Of(own, r.others)
	return err
}

// mayRun refuses work on a row beside the other rows of its identity; see Store.readTwins.
func (r *actedRow) mayRun(others []sqlform.Twin) error {
	said := store.Outcome(0)
	if r.marked {
		said = r.outcome
	}
	return admin.MayRun(r.number, said, r.owns, sqlform.StoredTwins(others))
}

// closeMarker closes the marker of a row that is closed without an effect, if it belongs to
// that row. One that a conflict had is given back to the row of the first content.
func (s *Store) closeMarker(ctx context.Context, tx *sql.Tx, r *actedRow) error {
	to := sqlform.Marker{Outcome: int64(store.Discarded), Version: r.version, Sum: r.sum}
	if len(r.conflict) > 0 {
		to = sqlform.Returned(to, r.others)
	}
	return s.turnMarker(ctx, tx, r, to)
}

// turnMarker has the marker of a row say something else, if it belongs to the row and does not
// say that its content is applied.
func (s *Store) turnMarker(ctx context.Context, tx *sql.Tx, r *actedRow, to sqlform.Marker) error {
	if !r.owns || r.outcome == store.Applied {
		return nil
	}
	done, err := tx.ExecContext(ctx, s.sql.TurnMarker, to.Outcome, to.Version, to.Sum, r.scope, r.id, r.marker.Outcome, r.marker.Version, r.marker.Sum)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("row %d: its marker was not written: %w", r.number, semel.ErrChanged), err)
	}
	return nil
}

// set changes a row if nobody has since it was seen.
func (s *Store) set(ctx context.Context, tx *sql.Tx, r *actedRow, statement string, args ...any) error {
	done, err := tx.ExecContext(ctx, statement, append(args, r.number, r.revision)...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("row %d: %w", r.number, semel.ErrChanged), err)
	}
	return nil
}

func (s *Store) record(ctx context.Context, tx *sql.Tx, a store.Act, number int64, result string) error {
	return writeIn(ctx, tx, sqlform.Acts, 1, s.sql.Act, number, sqlform.Plain(a.Verb), sqlform.Plain(a.Who), sqlform.Plain(a.Why), result)
}

// answer passes on what an act's caller asks for and wraps the rest.
func (s *Store) answer(doing string, err error) error {
	if err == nil || errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) || errors.Is(err, semel.ErrConflict) {
		return err
	}
	return s.blameless(doing, err)
}

// Discard implements store.Inbox. semel.ErrState: the row's state cannot become
// discarded.
func (s *Store) Discard(ctx context.Context, number, revision int64, a store.Act) error {
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		if err := r.state.MayBecome(store.StateDiscarded); err != nil {
			return fmt.Errorf("row %d %w", number, err)
		}
		if err := s.readTwins(ctx, tx, r); err != nil {
			return err
		}
		if err := s.set(ctx, tx, r, s.sql.DiscardRow); err != nil {
			return err
		}
		if err := s.closeMarker(ctx, tx, r); err != nil {
			return err
		}
		if err := s.leaveLines(ctx, tx, []int64{number}); err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, "done")
	})
	return s.answer("discard", err)
}

// Record implements admin.Recorder.
func (s *Store) Record(ctx context.Context, a store.Act) error {
	return s.answer("record", s.write(ctx, func(tx *sql.Tx) error { return s.record(ctx, tx, a, a.Row, "done") }))
}

// Acts implements store.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(ctx context.Context, number int64, limit int) ([]store.Act, error) {
	if limit <= 0 {
		limit = mostRows
	}
	return s.acts(ctx, s.sql.Acts, number, limit)
}

func (s *Store) acts(ctx context.Context, statement string, of any, limit int) ([]store.Act, error) {
	rows, err := s.db.QueryContext(ctx, statement, of, limit)
	if err != nil {
		return nil, s.blameless("acts", err)
	}
	defer rows.Close()
	var acts []store.Act
	for rows.Next() {
		var a store.Act
		var at int64
		if err := rows.Scan(&a.Row, &a.Verb, &a.Who, &a.Why, &a.Result, &at); err != nil {
			return nil, s.blameless("acts", err)
		}
		a.At = time.UnixMilli(at)
		acts = append(acts, a)
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("acts", err)
	}
	return acts, nil
}
