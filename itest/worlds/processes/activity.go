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
	_ "github.com/jackc/pgx/v5/stdlib" // the database driver
)

// Activity watches a PostgreSQL server for a fault test: it asks the server whether a process has an open transaction.
// The server knows the process by its application name.
type Activity struct{ DB *sql.DB }

// OpenActivity connects to the server at dsn.
func OpenActivity(dsn string) (*Activity, error) {
	db, err := sql.Open("pgx", dsn+"&application_name=proof")
	return &Activity{db}, err
}

// Close closes the connections.
func (a *Activity) Close() { _ = a.DB.Close() }

// Effects returns the number of effects in the log, or 0 if the log does not exist yet. Effects returns an
// error while the server restarts.
func (a *Activity) Effects(ctx context.Context) (n int, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) from effects`).Scan(&n)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42P01" {
		return 0, nil
	}
	return n, err
}

// Open reports whether a process has an open transaction that has written something.
func (a *Activity) Open(ctx context.Context, process string) (open bool, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) > 0
		from pg_stat_activity where application_name = $1 and backend_xid is not null`, process).Scan(&open)
	return open, err
}

// Settled reports whether a frozen process has begun a transaction with the statement opening and has sent no further
// statement. While the server runs the last statement of the process, which may be a COMMIT, Settled waits.
func (a *Activity) Settled(ctx context.Context, process string, opening Opening) (bool, error) {
	for range 50 {
		active, open, err := a.querySessions(ctx, process, opening)
		if err != nil || active == 0 {
			return open, err
		}
		Pause(ctx, 2*time.Millisecond)
	}
	return false, nil
}

// querySessions returns the number of active sessions of a process, and whether a session is idle in a
// transaction after its opening statement. For a writing transaction, a session that has not written yet counts as
// active, because its statement may be waiting for a lock.
func (a *Activity) querySessions(ctx context.Context, process string, opening Opening) (active int, open bool, err error) {
	err = a.DB.QueryRowContext(ctx, `select count(*) filter (where state = 'active'),
		count(*) filter (where state = 'idle in transaction' and query like $2 and (backend_xid is not null or not $3)) > 0
		from pg_stat_activity where application_name = $1`, process, opening.text, opening.writes).Scan(&active, &open)
	return active, open, err
}

// The number of times that a process is frozen at random moments before Corner is used. The number of tries is limited
// because the process does a part of its work before each try.
const tries = 10

// Catch freezes a process until it has an open transaction that has written something. The parameter name is the name
// of the process on the server. Catch first tries random moments, and then uses Corner. If blind is true, Catch freezes
// the process only once. When Catch returns, the process is frozen.
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

// catch freezes a process at random moments until it has an open transaction, with at most as many tries as the
// parameter tries says, or with one try if blind is true. When catch returns, the process is frozen.
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
