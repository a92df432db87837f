package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/semel-go/semel/contract"
)

// Constraints keep outcomes and states that no release knows out of PostgreSQL's
// tables; what is there is judged when it is read, here as in SQLite. They are no
// migration, so that the release before goes on working beside this one. A later
// release that writes another number widens them under their names.

// boundWait is how long adding a constraint may wait for the table's lock, behind
// which all others wait meanwhile.
const boundWait = "set local lock_timeout = '1s'"

// bounds are the statements, each of which is a transaction, those that add before
// those that validate: one that adds a
// constraint without a look at the rows holds the table's lock for a moment, one
// that validates it keeps nobody from reading or writing.
func (s *Store) bounds() []string {
	if s.postgres == nil {
		return nil
	}
	return strings.Split(s.postgres.Bounds, ";\n\n")
}

// bound runs what is missing of them, where the role owns the tables. What has to
// wait for a lock, or finds rows of a newer release, is left to the next call.
func (s *Store) bound(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	missing, err := s.unbounded(ctx, s.db)
	for _, number := range missing {
		err := s.write(ctx, func(tx *sql.Tx) error { return s.boundIn(ctx, tx, number) })
		if err != nil && s.Classify(err) != contract.ClassContended && sqlState(err) != stateCheck {
			return err
		}
	}
	return err
}

// boundIn runs one of them unless another process has, under the lock of
// migrations. What was not added cannot be validated.
func (s *Store) boundIn(ctx context.Context, tx *sql.Tx, number int) error {
	if _, err := tx.ExecContext(ctx, s.sql.Migrations); err != nil {
		return err
	}
	statements := s.bounds()
	missing, err := s.unbounded(ctx, tx)
	if err != nil || !slices.Contains(missing, number) || slices.Contains(missing, number-len(statements)/2) {
		return err
	}
	if _, err := tx.ExecContext(ctx, boundWait); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, statements[number])
	return err
}

// unbounded are the numbers of the statements that have not run.
func (s *Store) unbounded(ctx context.Context, in interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) (missing []int, err error) {
	rows, err := in.QueryContext(ctx, s.postgres.Unbounded)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		missing = append(missing, n)
	}
	return missing, rows.Err()
}
