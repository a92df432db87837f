package inbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/sqlstore/internal/database"
)

// MostAhead is how many rows CutAhead changes with one statement in PostgreSQL.
const MostAhead = 1000

// CutAhead shortens the waits of rows that were written while the database's clock was ahead. It examines the
// rows in only, or all rows if only is empty. CutAhead returns the number of changed rows, and the largest
// error of the clock. In SQLite it checks for such rows first, so that it does not take the writer's slot
// without need.
func CutAhead(ctx context.Context, s *database.DB, only string) (rows int, by time.Duration, err error) {
	if s.Postgres != nil {
		return cut(s.Pool.QueryRowContext(ctx, s.SQL.CutAhead, only))
	}
	if err := s.File.Check(); err != nil {
		return 0, 0, err
	}
	if rows, by, err = cut(s.Pool.QueryRowContext(ctx, s.SQLite.DatedAhead, only)); err != nil || rows == 0 {
		return 0, 0, err
	}
	err = s.Exec(ctx, s.SQL.CutAhead, only)
	return rows, by, err
}

// cut reads how many rows were changed, and the largest error of the clock.
func cut(row *sql.Row) (rows int, by time.Duration, err error) {
	var ms int64
	err = row.Scan(&rows, &ms)
	return rows, time.Duration(ms) * time.Millisecond, err
}
