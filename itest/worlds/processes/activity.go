//go:build unix

package processes

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// Activity watches a PostgreSQL server for a proof. Activity asks the server whether a process
// has an open transaction; the server knows the process by its application name.
type Activity struct{ DB *sql.DB }

// OpenActivity connects to the server at dsn.
func OpenActivity(dsn string) (*Activity, error) {
	db, err := sql.Open("pgx", dsn+"&application_name=proof")
	return &Activity{db}, err
}

// Close closes the connections.
func (a *Activity) Close() { _ = a.DB.Close() }

// Effects returns the number of effects in the log, and 0 before the first. Effects returns an
// error while the server restarts.
func (a *Activity) Effects(ctx context.Context) (n int, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) from effects`).Scan(&n)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42P01" {
		return 0, nil
	}
	return n, err
}

// Open reports whether a process has an open transaction that has written.
func (a *Activity) Open(ctx context.Context, process string) (open bool, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) > 0
		from pg_stat_activity where application_name = $1 and backend_xid is not null`, process).Scan(&open)
	return open, err
}

// Settled reports whether a frozen process has begun a transaction with the opening and has
// sent nothing since. Settled waits while the server runs the last statement of the process,
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

// sessions counts the sessions of a process for which the server is working, and reports
// whether one is idle in a transaction after its opening. For a writing transaction, a session
// that has not written yet counts as working: its statement may be waiting for a lock.
func (a *Activity) sessions(ctx context.Context, process string, opening Opening) (active int, open bool, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) filter (where state = 'active'),
		count(*) filter (where state = 'idle in transaction' and query like $2 and (backend_xid is not null or not $3)) > 0
		from pg_stat_activity where application_name = $1`, process, opening.text, opening.writes).Scan(&active, &open)
	return active, open, err
}

// tries is how often a process is frozen at random moments, in the hope of an open transaction,
// before Corner is used. Each try lets the process do more of its work, which is limited.
const tries = 10

// Catch freezes a process, which the server knows by this name, until it has an open
// transaction that has written. Catch tries random moments first, and then Corner. With blind
// it freezes the process only once. The process is frozen afterwards.
func (a *Activity) Catch(ctx context.Context, p *Process, name string, random *rand.Rand, blind bool) (open bool, err error) {
	open, err = catch(ctx, p, random, tries, blind, func() (bool, error) {
		open, err := a.Settled(ctx, name, Marking())
		return open && err == nil, nil // the server may be down
	})
	if open || err != nil || blind {
		return open, err
	}
	err = cmp.Or(p.Thaw(), a.Corner(ctx, p, name, Marking()))
	return err == nil, err
}

// catch freezes a process at random moments until it has an open transaction, in at most so many
// tries; with blind in one try. The process is frozen afterwards.
func catch(ctx context.Context, p *Process, random *rand.Rand, tries int, blind bool, open func() (bool, error)) (bool, error) {
	for try := 1; ; try++ {
		Pause(ctx, time.Duration(random.Int64N(int64(5*time.Millisecond))))
		if err := p.Freeze(); err != nil {
			return false, fmt.Errorf("freeze semel: %w", err)
		}
		if is, err := open(); is || err != nil || blind || try == tries {
			return is, err
		}
		if err := p.Thaw(); err != nil {
			return false, err
		}
	}
}
