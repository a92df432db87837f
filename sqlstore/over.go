package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// withoutOver ends those claims whose markers do not wait for their rows, and returns the others:
// no end of such a claim would stand, and its row would be claimed for ever. It asks about suspect
// claims alone, which such a row becomes with its second claim, so that claims cost no more.
func (s *Store) withoutOver(ctx context.Context, all []store.Claimed) ([]store.Claimed, error) {
	kept := all[:0]
	for _, c := range all {
		over := false
		if c.Suspect {
			var err error
			if over, err = s.over(ctx, c); err != nil {
				return nil, err
			}
		}
		if !over {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// over ends a claim whose marker does not wait for its row, and reports whether it did.
func (s *Store) over(ctx context.Context, c store.Claimed) (over bool, err error) {
	s, err = s.ofRow(ctx, c.Number)
	if err != nil {
		return false, err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		over = false
		r, err := s.look(ctx, tx, c.Number, c.Row.Revision)
		if err != nil {
			return err
		}
		if err := s.readTwins(ctx, tx, r); err != nil {
			return err
		}
		if r.owns && r.outcome == store.Waiting {
			return nil
		}
		e, why := sqlform.Over(r.marked, r.marker, r.owns, r.others)
		if over = e != 0; !over {
			_, err := tx.ExecContext(ctx, s.sql.MarkersWait, actedRows(r))
			return err
		}
		next, _ := store.StateInProgress.After(e)
		if err := s.set(ctx, tx, r, s.sql.OverRow, string(next), sqlform.OverReason(e), why); err != nil || e == store.RowParked {
			return err
		}
		return s.leaveLines(ctx, tx, []int64{r.number})
	})
	if errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) {
		return false, nil // somebody else was faster, or a newer release knows better: the claim says so
	}
	return over, err
}
