//go:build unix

package prooffile

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// activity is the proof's own view of a PostgreSQL server. Whether a process
// has a transaction open is asked of the server, which knows it by its name.
type activity struct{ db *sql.DB }

func openActivity(dsn string) (*activity, error) {
	db, err := sql.Open("pgx", dsn+"&application_name=proof")
	return &activity{db}, err
}

func (a *activity) close() { _ = a.db.Close() }

// effects is how many effects are in the log; 0 before there is one. While the
// server restarts it is an error.
func (a *activity) effects(ctx context.Context) (n int, err error) {
	err = a.db.QueryRowContext(ctx, `select count(*) from effects`).Scan(&n)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42P01" {
		return 0, nil
	}
	return n, err
}

// written chooses transactions of a process that have written something.
const written = ` from pg_stat_activity where application_name = $1 and backend_xid is not null`

// open reports whether a process has a transaction open that has written.
func (a *activity) open(ctx context.Context, process string) (open bool, err error) {
	err = a.db.QueryRowContext(ctx, `select count(*) > 0`+written, process).Scan(&open)
	return open, err
}

// settled is open for a process that stands still: the server may still work at
// what it sent last, which may be its COMMIT.
func (a *activity) settled(ctx context.Context, process string) (open bool, err error) {
	for range 50 {
		var active int
		err := a.db.QueryRowContext(ctx, `select count(*) filter (where state = 'active'),
			count(*) filter (where state = 'idle in transaction') > 0`+written, process).Scan(&active, &open)
		if err != nil || active == 0 {
			return open, err
		}
		pause(ctx, 2*time.Millisecond)
	}
	return false, nil
}
