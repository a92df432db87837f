//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Time limits: how long all tries together wait until a process begins a transaction; how long
// one try locks the table for all processes, because the chosen process may itself wait for
// another; and how long a server may take to answer.
const (
	patience = 3 * time.Minute
	kept     = 300 * time.Millisecond
	answered = 10 * time.Second
)

// Opening is the statement that begins the transactions in which a process is caught: its text,
// whether it writes, and the table, with the lock mode, that makes it wait.
type Opening struct {
	text        string
	writes      bool
	table, mode string
}

// Marking begins a transaction that writes markers; its first write is the guard.
func Marking() Opening { return Opening{`%`, true, "semel_guard", "share"} }

// Claiming begins a transaction that applies claimed rows of the inbox. Claiming may write
// nothing before the handlers write. If it continues too late, the claim tokens reject it.
func Claiming() Opening {
	return Opening{`%locked_until > %clock_timestamp() and m.outcome = 2%`, false, "semel_markers", "access exclusive"}
}

// errElusive means that the process runs and must be cornered again: it was not in a
// transaction, or has ended it.
var errElusive = errors.New("the process had no transaction that stayed open")

// errBefore means the same for a process that was about to begin one: it prepared the
// statement, or wrote what precedes it. The next try follows at once.
var errBefore = fmt.Errorf("the process opened its transaction too late: %w", errElusive)

// Corner freezes a process in a transaction that has begun. The transaction stays open and idle
// until the server ends it. Corner tries as long as the process has work.
//
// A transaction is idle only for a moment, between the answer to its opening and the
// statements, which are sent together with COMMIT. On a busy server, most frozen processes have
// already sent their COMMIT, and the process runs out of work before a freeze succeeds. So
// Corner locks the table of the opening, freezes the process while it waits for the lock, and
// then releases the lock. The process cannot have sent anything after the answer.
func (a *Activity) Corner(ctx context.Context, p *Process, name string, opening Opening) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := a.cornerOnce(ctx, p, name, opening)
		if err == nil || errors.Is(err, ErrEnded) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s was not caught in an open transaction: %w", name, err)
		}
		if !errors.Is(err, errBefore) {
			Pause(ctx, 20*time.Millisecond) // for example while the server restarts
		}
	}
}

// cornerOnce tries once to corner the process. After an error the process runs.
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

// waiting counts the sessions that wait for a table, and the sessions of the process that are
// in a transaction with this opening. Other sessions of the process may only prepare the
// statement, as new connections do. For claims, sessions of other processes count too: the
// process would claim the messages that they receive.
const waiting = `select count(*), count(*) filter (where a.application_name = $1 and a.xact_start < a.query_start and a.query like $2)
	from pg_locks l join pg_stat_activity a using (pid)
	where (a.application_name = $1 or $2 <> '%') and l.relation = $3::regclass and not l.granted`

// freezeWaiting freezes the process while its transaction waits for the table of its opening,
// and then unlocks the table.
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
		// Use another connection: inside a transaction, pg_stat_activity does not change.
		var sessions, inside int
		if err := a.DB.QueryRowContext(ctx, waiting, name, opening.text, opening.table).Scan(&sessions, &inside); err != nil {
			return err
		}
		switch {
		case inside > 0:
			return p.Freeze()
		case sessions > 0:
			return errBefore // it begins its transaction when the table is unlocked
		}
	}
	return errElusive
}
