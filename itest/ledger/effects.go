package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// Effects is what the effect log and the counters of a database say.
type Effects struct {
	// Rows are in the log, which has no unique key.
	Rows int
	// IDs are the messages that have an effect.
	IDs map[string]bool
	// Astray are groups whose counter is not their number of log rows.
	Astray int
}

// Reader is a database of any kind.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ReadEffects reads the tables effects and counters, as the policies of the
// proofs make them.
func ReadEffects(ctx context.Context, from Reader) (Effects, error) {
	e := Effects{IDs: map[string]bool{}}
	rows, err := from.QueryContext(ctx, `select delivery from effects`)
	if err != nil {
		return e, fmt.Errorf("read the effect log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return e, err
		}
		e.Rows++
		e.IDs[id] = true
	}
	if err := rows.Err(); err != nil {
		return e, err
	}
	const groups = `
		select count(*) from (
		    select type, repository, sum(n) as n from (
		        select type, repository, n from counters
		        union all
		        select type, repository, -count(*) from effects group by type, repository) as both_sides
		    group by type, repository) as unlike where n <> 0`
	return e, from.QueryRowContext(ctx, groups).Scan(&e.Astray)
}

// Doubled are effects beyond the first of a message.
func (e Effects) Doubled() int { return e.Rows - len(e.IDs) }
