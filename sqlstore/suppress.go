package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Suppress implements admin.Requeuer.
func (s *Store) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MayAct(store.RowSuppressed, r.stored(), r.due) }
	change := func(ctx context.Context, s *Store, tx *sql.Tx, rows []*actedRow) error {
		if err := s.setAll(ctx, tx, rows, s.sql.SuppressRows, string(semel.ReasonSuppressed)); err != nil {
			return err
		}
		return s.turnAll(ctx, tx, rows, store.Parked)
	}
	of := acting{verb: "suppress", act: a, rows: rows, judge: judge, change: change}
	return of.carry(ctx, s)
}
