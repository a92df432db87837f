package inbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/sqlstore/internal/database"
)

// MostAhead is how many rows PostgreSQL changes with one statement.
const MostAhead = 1000

// CutAhead shortens the waits of rows that were written while the clock was ahead: of the rows
// in only, or of all. CutAhead returns their number, and the largest difference. In SQLite it
// checks before it takes the writer's slot, which other transactions need.
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

// cut reads how many rows are dated in the future, and the largest difference.
func cut(row *sql.Row) (rows int, by time.Duration, err error) {
	var ms int64
	err = row.Scan(&rows, &ms)
	return rows, time.Duration(ms) * time.Millisecond, err
}
