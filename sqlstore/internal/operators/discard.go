package operators

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// Discard implements store.Inbox.
func (s *Store) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MayAct(store.RowDiscarded, r.stored(), r.due) }
	of := acting{verb: "discard", act: a, rows: rows, judge: judge, change: discard}
	return of.carry(ctx, s.db)
}

// discard closes rows and their markers, and lets their lines go on.
func discard(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
	if err := setAll(ctx, s, tx, rows, s.SQL.DiscardRows); err != nil {
		return err
	}
	turns := make([]turn, len(rows))
	for k, r := range rows {
		turns[k] = r.closed()
	}
	if err := turnMarkers(ctx, s, tx, turns...); err != nil {
		return err
	}
	return ordering.LeaveLines(ctx, s, tx, firstOfLines(rows))
}
