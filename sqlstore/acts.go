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

// seen is a row as an act finds it.
type seen struct {
	number, revision, scope int64
	state                   contract.RowState
	id, conflict            []byte
}

// look reads the row that an act is about, in the act's transaction.
func (s *Store) look(ctx context.Context, tx *sql.Tx, number, revision int64) (*seen, error) {
	r := &seen{number: number}
	err := tx.QueryRowContext(ctx, s.sql.State, number).Scan(&r.revision, &r.state, &r.scope, &r.id, &r.conflict)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && r.revision != revision:
		return nil, fmt.Errorf("row %d: %w", number, semel.ErrChanged)
	case err != nil:
		return nil, err
	}
	return r, nil
}

// set changes a row if nobody has since it was seen.
func (s *Store) set(ctx context.Context, tx *sql.Tx, r *seen, statement string, args ...any) error {
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

// Discard implements contract.Inbox. ErrState: the row's state cannot become
// discarded.
func (s *Store) Discard(ctx context.Context, number, revision int64, a contract.Act) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		if err := r.state.MayBecome(contract.StateDiscarded); err != nil {
			return fmt.Errorf("row %d %w", number, err)
		}
		if err := s.set(ctx, tx, r, s.sql.Become, string(contract.StateDiscarded), 0, 0); err != nil {
			return err
		}
		if len(r.conflict) == 0 {
			if _, err := tx.ExecContext(ctx, s.sql.Discard, int64(semel.Discarded), r.scope, r.id); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, a, number, "done")
	})
	return s.answer("discard", err)
}

// FailRetry implements contract.Inbox.
func (s *Store) FailRetry(ctx context.Context, number, revision int64, text string, a contract.Act) error {
	text = sqlform.ErrorText(text)
	err := s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		if err := r.state.Understood(); err != nil {
			return fmt.Errorf("row %d %w", number, err)
		}
		if err := s.set(ctx, tx, r, s.sql.Failed, text, text); err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, text)
	})
	return s.answer("recording a failed retry", err)
}

// Acts implements contract.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(ctx context.Context, number int64, limit int) ([]contract.Act, error) {
	if limit <= 0 {
		limit = mostRows
	}
	rows, err := s.db.QueryContext(ctx, s.sql.Acts, number, limit)
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

// BeginRow implements contract.RowRetrier. A row whose identity is applied is
// refused with ErrConflict, also when it is not a conflict's: then the content
// of a conflict was applied in its place.
func (s *Store) BeginRow(ctx context.Context, o contract.TxOptions, number, revision int64, a contract.Act) (contract.Batch[*sql.Tx], error) {
	limit := o.Statement
	o.Statement = 0 // not yet: the first statements are the store's own
	b, _, err := s.begin(ctx, o, nil)
	if err != nil {
		return nil, s.blameless("begin", err)
	}
	err = s.complete(ctx, b.tx, number, revision, a)
	if err == nil && s.dialect.limit != nil {
		err = s.dialect.limit(ctx, b, limit)
	}
	if err != nil {
		b.Rollback(ctx)
		return nil, s.answer("retry", err)
	}
	return b, nil
}

func (s *Store) complete(ctx context.Context, tx *sql.Tx, number, revision int64, a contract.Act) error {
	r, err := s.look(ctx, tx, number, revision)
	if err != nil {
		return err
	}
	if err := r.state.MayBecome(contract.StateCompleted); err != nil {
		return fmt.Errorf("row %d %w: %w", number, err, semel.ErrChanged)
	}
	done, err := tx.ExecContext(ctx, s.sql.Apply, number)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("row %d: %w", number, semel.ErrConflict), err)
	}
	if err := s.set(ctx, tx, r, s.sql.Become, string(contract.StateCompleted), 1, 1); err != nil {
		return err
	}
	return s.record(ctx, tx, a, number, "done")
}
