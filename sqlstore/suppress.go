package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Suppress implements admin.IntentHolder.
func (s *Store) Suppress(ctx context.Context, number, revision int64, a store.Act) error {
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		if _, legal := r.state.After(store.RowSuppressed); !legal {
			return fmt.Errorf("row %d is %s: %w", number, r.state, semel.ErrState)
		}
		if err := s.readTwins(ctx, tx, r); err != nil {
			return err
		}
		if err := s.set(ctx, tx, r, s.sql.SuppressRow, string(semel.ReasonSuppressed)); err != nil {
			return err
		}
		if err := s.turnMarkers(ctx, tx, turn{r, sqlform.Marker{Outcome: int64(store.Parked), Version: r.version, Sum: r.sum}}); err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, "done")
	})
	return s.answer("suppress", err)
}
