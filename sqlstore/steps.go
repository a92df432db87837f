package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// stepsArg are the steps of a row as PostgreSQL's statement takes them.
type stepsArg struct {
	N int64  `json:"n"`
	S string `json:"s"`
	A bool   `json:"a"`
}

// StepsArgument is the argument of PostgreSQL's statement that writes the steps of claims,
// empty if none of these endings has any: for drivers of their own.
func StepsArgument(s *Store, endings []store.ClaimEnding) (string, error) {
	var all []stepsArg
	for i := range endings {
		if e := &endings[i]; e.Steps != nil {
			text, err := sqlform.Steps(s.crypt, e.Number, e.Steps)
			if err != nil {
				return "", err
			}
			all = append(all, stepsArg{e.Number, text, e.Event == store.RowStepped})
		}
	}
	if all == nil {
		return "", nil
	}
	return jsonText(all), nil
}

// stepClaims writes the steps of claims that have ended in tx.
func stepClaims(ctx context.Context, s *Store, tx *sql.Tx, endings []store.ClaimEnding) error {
	argument, err := StepsArgument(s, endings)
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
