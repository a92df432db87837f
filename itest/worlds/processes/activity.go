//go:build unix

package processes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// Activity is a proof's own view of a PostgreSQL server. Whether a process has
// a transaction open is asked of the server, which knows it by its name.
type Activity struct{ DB *sql.DB }

// OpenActivity opens a view of the server at dsn.
func OpenActivity(dsn string) (*Activity, error) {
	db, err := sql.Open("pgx", dsn+"&application_name=proof")
	return &Activity{db}, err
}

// Close closes the view.
func (a *Activity) Close() { _ = a.DB.Close() }

// Effects is how many effects are in the log; 0 before there is one. While the
// server restarts it is an error.
func (a *Activity) Effects(ctx context.Context) (n int, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) from effects`).Scan(&n)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42P01" {
		return 0, nil
	}
	return n, err
}

// Open reports whether a process has a transaction open that has written.
func (a *Activity) Open(ctx context.Context, process string) (open bool, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) > 0
		from pg_stat_activity where application_name = $1 and backend_xid is not null`, process).Scan(&open)
	return open, err
}

// Settled reports whether a frozen process has begun a transaction with the opening and has
// sent nothing since. It waits while the server works at the last statement of the process,
// which may be its COMMIT.
func (a *Activity) Settled(ctx context.Context, process string, opening Opening) (bool, error) {
	for range 50 {
		active, open, err := a.sessions(ctx, process, opening)
		if err != nil || active == 0 {
			return open, err
		}
		Pause(ctx, 2*time.Millisecond)
	}
	return false, nil
}

// sessions counts the sessions of a process for which the server works, and reports whether
// one waits in a transaction after its opening. One that is to write and has not may be about
// to: what it sent may wait for a lock.
func (a *Activity) sessions(ctx context.Context, process string, opening Opening) (active int, open bool, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) filter (where state = 'active'),
		count(*) filter (where state = 'idle in transaction' and query like $2 and (backend_xid is not null or not $3)) > 0
		from pg_stat_activity where application_name = $1`, process, opening.text, opening.writes).Scan(&active, &open)
	return active, open, err
}

// tries is how often a process is frozen at random moments in the hope of an
// open transaction, before it is cornered. Each try lets it work on, and what
// it has to do ends.
const tries = 10

// Catch freezes a process, which the server knows by this name, again and again
// until it has written in a transaction that is open, and at last corners it;
// blind, only once. It stands still afterwards.
func (a *Activity) Catch(ctx context.Context, p *Process, name string, random *rand.Rand, blind bool) (open bool, err error) {
	for try := 1; ; try++ {
		Pause(ctx, time.Duration(random.Int64N(int64(5*time.Millisecond))))
		if err := p.Freeze(); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		open, err := a.Settled(ctx, name, Marking())
		if open && err == nil || blind {
			return open, err
		}
		if err := p.Thaw(); err != nil {
			return false, err
		}
		if try == tries {
			err := a.Corner(ctx, p, name, Marking())
			return err == nil, err
		}
	}
}
