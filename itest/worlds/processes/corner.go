//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long a process is waited for that is to begin a transaction, all tries
// together; how long the table is kept from all processes in one of them, since
// the one that is waited for may itself wait for another; and how long a server is
// waited for that is to answer it.
const (
	patience = 3 * time.Minute
	kept     = 300 * time.Millisecond
	answered = 10 * time.Second
)

// Opening is the statement by which a process is met in a transaction: what its text is like,
// whether it writes, and the table for which it waits while that is locked in a mode.
type Opening struct {
	text        string
	writes      bool
	table, mode string
}

// Marking opens a transaction that marks messages: it writes the guard first.
func Marking() Opening { return Opening{`%`, true, "semel_guard", "share"} }

// Claiming opens one that applies claimed rows of the inbox. It may write nothing before
// what handlers write, and is refused by the claims' tokens where it goes on too late.
func Claiming() Opening {
	return Opening{`%locked_until > %clock_timestamp() and m.outcome = 2%`, false, "semel_markers", "access exclusive"}
}

// errElusive says that a process runs and is to be cornered anew: it was not in a
// transaction, or ended the one that it was in.
var errElusive = errors.New("it had no transaction that stayed open")

// errBefore says the same of a process that was about to open one: it prepared the statement,
// or wrote what comes before. It is cornered anew at once.
var errBefore = fmt.Errorf("it opened its transaction too late: %w", errElusive)

// Corner freezes a process in a transaction that has begun and that stays open
// and idle until the server ends it, as long as the process has anything to do.
//
// A transaction is idle for moments only, between the answer to its opening and
// the statements, which are sent together with COMMIT. Where the server has no
// time, most frozen processes have sent their COMMIT before the server reads it,
// and what a process has to do is over before it is met. So the server is kept
// from answering: the table of the opening is locked, the
// process is frozen while it waits for that, and only then the server goes on.
// What comes after the answer, nobody can have sent.
func (a *Activity) Corner(ctx context.Context, p *Process, name string, opening Opening) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := a.cornerOnce(ctx, p, name, opening)
		if err == nil || errors.Is(err, ErrEnded) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s was not met with an open transaction: %w", name, err)
		}
		if !errors.Is(err, errBefore) {
			Pause(ctx, 20*time.Millisecond) // while the server restarts, say
		}
	}
}

// cornerOnce tries to corner the process; after an error it runs.
func (a *Activity) cornerOnce(ctx context.Context, p *Process, name string, opening Opening) error {
	if err := a.freezeWaiting(ctx, p, name, opening); err != nil {
		return err
	}
	most, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	for most.Err() == nil {
		active, open, err := a.sessions(most, name, opening)
		if err == nil && active == 0 {
			if open {
				return nil
			}
			break // nothing of it is to come: the others would read on meanwhile
		}
		Pause(most, 2*time.Millisecond)
	}
	return errors.Join(errElusive, p.Thaw())
}

// waiting counts the sessions that wait for a table, and those of the process that are in a
// transaction whose opening is meant. Of the process's other sessions, some only prepare the
// statement, as a new connection does. The sessions of other processes count where claims
// are meant: what they receive is what it would claim.
const waiting = `select count(*), count(*) filter (where a.application_name = $1 and a.xact_start < a.query_start and a.query like $2)
	from pg_locks l join pg_stat_activity a using (pid)
	where (a.application_name = $1 or $2 <> '%') and l.relation = $3::regclass and not l.granted`

// freezeWaiting freezes the process while its transaction waits for the table of
// its opening, which is free again afterwards.
func (a *Activity) freezeWaiting(ctx context.Context, p *Process, name string, opening Opening) error {
	tx, err := a.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `lock table `+opening.table+` in `+opening.mode+` mode`); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < kept; Pause(ctx, time.Millisecond) {
		if alive, err := p.Running(); err != nil || !alive {
			return errors.Join(err, ErrEnded)
		}
		// Beside the transaction: inside one, the activity stays as it was first seen.
		var sessions, inside int
		if err := a.DB.QueryRowContext(ctx, waiting, name, opening.text, opening.table).Scan(&sessions, &inside); err != nil {
			return err
		}
		switch {
		case inside > 0:
			return p.Freeze()
		case sessions > 0:
			return errBefore // it gets to its transaction once the table is free
		}
	}
	return errElusive
}
