package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// Reader is a database that can run a query.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Effects returns how often each message is in the effect log. column is the column with the message's id.
// The log has no unique key, so a message can be in it twice.
func Effects(ctx context.Context, from Reader, column string) (map[string]int, error) {
	rows, err := from.QueryContext(ctx, `select `+column+`, count(*) from effects group by 1`)
	if err != nil {
		return nil, fmt.Errorf("read the effect log: %w", err)
	}
	defer func() { _ = rows.Close() }()
	effects := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		effects[id] = n
	}
	return effects, rows.Err()
}

// Astray returns the number of groups whose counter differs from their number of rows in the effect log.
func Astray(ctx context.Context, from Reader) (astray int, err error) {
	err = from.QueryRowContext(ctx, `
		select count(*) from (
		    select type, repository, sum(n) as n from (
		        select type, repository, n from counters
		        union all
		        select type, repository, -count(*) from effects group by type, repository) as both_sides
		    group by type, repository) as unlike where n <> 0`).Scan(&astray)
	return astray, err
}
