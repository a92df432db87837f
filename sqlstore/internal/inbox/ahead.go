package inbox

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/sqlstore/internal/database"
)

// MostAhead is how many rows PostgreSQL cuts with one statement.
const MostAhead = 1000

// CutAhead cuts waits of rows that were written while the clock was ahead, of named ones or of all, and
// returns how many, and by how much the furthest. In SQLite it looks before it takes the writer's place,
// which others need.
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

// cut reads how many rows are dated ahead, and by how much at most.
func cut(row *sql.Row) (rows int, by time.Duration, err error) {
	var ms int64
	err = row.Scan(&rows, &ms)
	return rows, time.Duration(ms) * time.Millisecond, err
}
