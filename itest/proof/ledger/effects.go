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

// Effects returns how often each message is in the effect log. The parameter column names the column with the message's
// id. The effect log has no unique key, so a message can have two rows.
func Effects(ctx context.Context, from Reader, column string) (map[string]int, error) {
	effects, id, n := map[string]int{}, "", 0
	err := Each(ctx, from, `select `+column+`, count(*) from effects group by 1`, nil, []any{&id, &n}, func() { effects[id] = n })
	return effects, err
}

// Each calls the function do for each row of a query, after reading the row's columns.
func Each(ctx context.Context, from Reader, query string, args, columns []any, do func()) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%.60s: %w", query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		do()
	}
	return rows.Err()
}

// Count returns the number that a query returns.
func Count(ctx context.Context, from Reader, query string, args ...any) (n int, err error) {
	err = from.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

// Astray returns the number of groups whose counter differs from the group's number of rows in the effect log.
func Astray(ctx context.Context, from Reader) (int, error) {
	return Count(ctx, from, `
		select count(*) from (
		    select type, repository, sum(n) as n from (
		        select type, repository, n from counters
		        union all
		        select type, repository, -count(*) from effects group by type, repository) as both_sides
		    group by type, repository) as unlike where n <> 0`)
}
