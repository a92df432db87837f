package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// actedRow is a row as an operator's act finds it.
type actedRow struct {
	number, revision, scope int64
	state                   contract.RowState
	outcome                 contract.Outcome // of its marker
	version                 int64
	id, conflict, sum       []byte
	due                     bool
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
	found.Outcome = int64(contract.Parked)
	if err := tx.QueryRowContext(ctx, s.sql.RowMarker, number).Scan(&found.Outcome); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	r.state, err = found.Understood()
	r.outcome = contract.Outcome(found.Outcome)
	return r, err
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

func (s *Store) record(ctx context.Context, tx *sql.Tx, a contract.Act, number int64, result string) error {
	_, err := tx.ExecContext(ctx, s.sql.Act, number, sqlform.Plain(a.Verb), sqlform.Plain(a.Who), sqlform.Plain(a.Why), result)
	return err
}

// answer passes on what an act's caller asks for and wraps the rest.
func (s *Store) answer(doing string, err error) error {
	if err == nil || errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) || errors.Is(err, semel.ErrConflict) {
		return err
	}
	return s.blameless(doing, err)
}

// Discard implements contract.Inbox. semel.ErrState: the row's state cannot become
// discarded.
func (s *Store) Discard(ctx context.Context, number, revision int64, a contract.Act) error {
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		if err := r.state.MayBecome(contract.StateDiscarded); err != nil {
			return fmt.Errorf("row %d %w", number, err)
		}
		if err := s.set(ctx, tx, r, s.sql.DiscardRow); err != nil {
			return err
		}
		if len(r.conflict) == 0 || r.state.Outcome() == contract.Waiting {
			if _, err := tx.ExecContext(ctx, s.sql.Discard, int64(contract.Discarded), r.scope, r.id); err != nil {
				return err
			}
		}
		if err := s.leaveLines(ctx, tx, []int64{number}); err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, "done")
	})
	return s.answer("discard", err)
}

// Record implements contract.Recorder.
func (s *Store) Record(ctx context.Context, a contract.Act) error {
	return s.answer("record", s.write(ctx, func(tx *sql.Tx) error { return s.record(ctx, tx, a, a.Row, "done") }))
}

// Acts implements contract.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(ctx context.Context, number int64, limit int) ([]contract.Act, error) {
	if limit <= 0 {
		limit = mostRows
	}
	return s.acts(ctx, s.sql.Acts, number, limit)
}

func (s *Store) acts(ctx context.Context, statement string, of any, limit int) ([]contract.Act, error) {
	rows, err := s.db.QueryContext(ctx, statement, of, limit)
	if err != nil {
		return nil, s.blameless("acts", err)
	}
	defer rows.Close()
	var acts []contract.Act
	for rows.Next() {
		var a contract.Act
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
