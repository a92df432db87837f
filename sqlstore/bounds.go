package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
)

// Constraints keep outcomes and states that no release knows out of PostgreSQL's
// tables; what is there is judged when it is read, here as in SQLite. They are no
// migration, so that the release before goes on working beside this one. A later
// release that writes another number widens them under their names.

// boundWait is how long one of them may wait for the table's lock, behind which
// all others wait meanwhile.
const boundWait = "set local lock_timeout = '1s'"

// validateWait lets one look at all rows: the role's limit is one of statements
// that somebody waits for.
const validateWait = "select pg_catalog.set_config('lock_timeout', '1s', true), pg_catalog.set_config('statement_timeout', '0', true)"

// bounds are the statements, each of which is a transaction, those that add before
// those that validate: one that adds a constraint without a look at the rows
// holds the table's lock for a moment, one that validates it keeps nobody from
// reading or writing.
func (s *Store) bounds() []string {
	if s.postgres == nil {
		return nil
	}
	return strings.Split(s.postgres.Bounds, ";\n\n")
}

// bound runs what is missing of them, where the role owns the tables. It fails
// only when its caller cancels: all works without them, so a lock, rows of a newer
// release, a rule against altering tables, a limit or a lack of time leave them to
// the next call, in silence, because a store has no log. Whoever is concerned
// reads of a constraint that is not valid in the table's description.
func (s *Store) bound(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	within := ctx
	if deadline, ok := ctx.Deadline(); ok {
		// The rest is for what a start has to do after this.
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	missing, _ := s.unbounded(within, s.db)
	for _, number := range missing {
		if within.Err() != nil {
			break
		}
		_ = s.write(within, func(tx *sql.Tx) error { return s.boundIn(within, tx, number) })
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// boundIn runs one of them unless another process has. One that adds takes the
// lock of migrations, because the second would fail. One that validates must not:
// it lasts, others that start would wait for it, and what is valid may be
// validated again. What was not added cannot be.
func (s *Store) boundIn(ctx context.Context, tx *sql.Tx, number int) error {
	statements := s.bounds()
	validates, wait := number >= len(statements)/2, boundWait
	if validates {
		wait = validateWait
	} else if _, err := tx.ExecContext(ctx, s.sql.Migrations); err != nil {
		return err
	}
	missing, err := s.unbounded(ctx, tx)
	if err != nil || !slices.Contains(missing, number) || validates && slices.Contains(missing, number-len(statements)/2) {
		return err
	}
	if _, err := tx.ExecContext(ctx, wait); err != nil {
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
