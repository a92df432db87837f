package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// BeginRow implements contract.RowRetrier. A row whose identity is applied is
// refused with semel.ErrConflict, also when it is not a conflict's: then the content
// of a conflict was applied in its place.
func (s *Store) BeginRow(ctx context.Context, o contract.TxOptions, number, revision int64, a contract.Act) (contract.Batch[pgx.Tx], error) {
	b, err := s.openRow(ctx, o, number, revision, a)
	if err != nil {
		return nil, err
	}
	return &direct{b}, nil
}

func (s *Store) openRow(ctx context.Context, o contract.TxOptions, number, revision int64, a contract.Act) (*batch, error) {
	later := o.Statement
	o.Statement = 0 // the first statements are the store's own
	b, _, err := s.open(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	err = b.complete(ctx, number, revision, a, later)
	if err == nil {
		return b, nil
	}
	b.Rollback(ctx)
	if errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) || errors.Is(err, semel.ErrConflict) {
		return nil, err
	}
	return nil, s.blameless("retry", err)
}

// complete closes the row with its marker and records the act, if nobody has
// changed the row since it was seen. From then on the server gives a statement
// no longer than this.
func (b *batch) complete(ctx context.Context, number, revision int64, a contract.Act, statement time.Duration) error {
	if err := b.completable(ctx, number, revision); err != nil {
		return err
	}
	apply := &request{sql: b.store.sql.Apply, args: []any{number}}
	become := &request{sql: b.store.sql.Become, args: []any{string(contract.StateCompleted), int64(1), int64(1), number, revision}}
	act := &request{sql: b.store.sql.Act, args: []any{number, sqlform.Plain(a.Verb), sqlform.Plain(a.Who), sqlform.Plain(a.Why), "done"}}
	limited := &request{sql: b.store.sql.Limit, args: []any{limit(statement)}}
	if err := b.ask(ctx, apply, become, act, limited); err != nil {
		return err
	}
	b.statement = statement
	switch {
	case become.tag.RowsAffected() != 1:
		return fmt.Errorf("row %d: %w", number, semel.ErrChanged)
	case apply.tag.RowsAffected() != 1:
		return fmt.Errorf("row %d: %w", number, semel.ErrConflict)
	}
	return nil
}

// completable locks the row and its marker, and says why the row cannot be
// completed.
func (b *batch) completable(ctx context.Context, number, revision int64) error {
	var found bool
	var now int64
	acted := sqlform.Acted{Number: number, Outcome: int64(semel.Parked), Inbox: b.store.sql.Inbox, Markers: b.store.sql.Markers}
	row := &request{sql: b.store.sql.State, args: []any{number}, read: func(rows pgx.Rows) error {
		var scope int64
		var id, conflict []byte
		for rows.Next() {
			found = true
			if err := rows.Scan(&now, &acted.State, &scope, &id, &conflict); err != nil {
				return err
			}
		}
		return rows.Err()
	}}
	marker := &request{sql: b.store.sql.RowMarker, args: []any{number}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&acted.Outcome); err != nil {
				return err
			}
		}
		return rows.Err()
	}}
	if err := b.ask(ctx, row, marker); err != nil {
		return err
	}
	if !found || now != revision {
		return fmt.Errorf("row %d: %w", number, semel.ErrChanged)
	}
	state, err := acted.Understood()
	if err != nil {
		return err
	}
	if err := state.MayBecome(contract.StateCompleted); err != nil {
		return fmt.Errorf("row %d %w: %w", number, err, semel.ErrChanged)
	}
	return nil
}
