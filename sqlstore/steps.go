package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// stepClaims writes the steps of claims that have ended in tx.
func stepClaims(ctx context.Context, s *Store, tx *sql.Tx, endings []store.ClaimEnding) error {
	argument, err := sqlform.StepsArgument(s.crypt, endings)
	if argument == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, s.sql.ClaimSteps, argument)
	return err
}

// withSteps are those of the endings that say something of steps, without those that were
// lost.
func withSteps(endings []store.ClaimEnding, lost []int) (all []store.ClaimEnding) {
	for i := range endings {
		if len(lost) > 0 && lost[0] == i {
			lost = lost[1:]
			continue
		}
		if endings[i].Steps != nil {
			all = append(all, endings[i])
		}
	}
	return all
}
