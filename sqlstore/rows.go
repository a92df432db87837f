package sqlstore

import (
	"context"
	"database/sql"
)

// eachRow calls each for every row that a statement returns, and ends with its first error.
func eachRow(ctx context.Context, from queries, query string, each func(*sql.Rows) error, args []any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
