package inbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/sqlstore/internal/database"
)

// MostAhead is the number of rows that CutAhead changes with one statement in PostgreSQL.
const MostAhead = 1000

// CutAhead shortens the waits of rows that were written while the database's clock was ahead. CutAhead examines the
// rows with the given numbers, or all rows if no number is given. The results are the number of changed rows, and the
// largest time by which the clock was ahead. In SQLite, CutAhead first checks whether rows must be changed, so that it
// does not block other writers without need.
func CutAhead(ctx context.Context, s *database.DB, numbers string) (rows int, by time.Duration, err error) {
	if s.Postgres != nil {
		return scanChange(s.Pool.QueryRowContext(ctx, s.SQL.CutAhead, numbers))
	}
	if err := s.File.Check(); err != nil {
		return 0, 0, err
	}
	if rows, by, err = scanChange(s.Pool.QueryRowContext(ctx, s.SQLite.DatedAhead, numbers)); err != nil || rows == 0 {
		return 0, 0, err
	}
	err = s.Exec(ctx, s.SQL.CutAhead, numbers)
	return rows, by, err
}

// scanChange reads the result of a statement: the number of changed rows, and the largest time by which the clock
// was ahead.
func scanChange(row *sql.Row) (rows int, by time.Duration, err error) {
	var ms int64
	err = row.Scan(&rows, &ms)
	return rows, time.Duration(ms) * time.Millisecond, err
}
