package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// BeginRow implements contract.RowRetrier. A row whose identity is applied is
// refused with semel.ErrConflict, also when it is not a conflict's: then the content
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
