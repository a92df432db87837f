//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Time limits. The constant patience limits the time of all tries together. The constant kept is the time for which one
// try locks the table: the lock stops all processes, and the chosen process may itself wait for another process. The
// constant answered is the time within which a server must answer.
const (
	patience = 3 * time.Minute
	kept     = 300 * time.Millisecond
	answered = 10 * time.Second
)

// Opening is the statement that begins the transactions in which a process is frozen. An Opening has the text of the
// statement, whether the statement writes, and the table and lock mode with which a test makes the statement wait.
type Opening struct {
	text        string
	writes      bool
	table, mode string
}

// Marking is the opening of a transaction that writes markers. A transaction that writes markers first writes the guard
// row.
func Marking() Opening { return Opening{`%`, true, "semel_guard", "share"} }

// Claiming is the opening of a transaction that applies claimed rows of the inbox. A transaction for claimed rows may
// write nothing before the handlers write. If the process continues too late, the claim tokens cause its writes to be
// rejected.
func Claiming() Opening {
	return Opening{`%locked_until > %clock_timestamp() and m.outcome = 2%`, false, "semel_markers", "access exclusive"}
}

// errElusive means that the process is running and Corner must try again: the process was in no transaction,
// or its transaction has ended.
var errElusive = errors.New("the process had no transaction that stayed open")

// errBefore means that the process was only about to begin a transaction: the process had prepared the first statement
// of the transaction, or had sent an earlier statement. Corner tries again at once.
var errBefore = fmt.Errorf("the process opened its transaction too late: %w", errElusive)

// Corner freezes a process in a transaction that has begun. The transaction stays open and idle until the
// server ends it. Corner tries as long as the process has work.
//
// A transaction is idle only for a moment: between the answer to its opening statement and the further statements,
// which the process sends together with COMMIT. If a process is frozen at a random moment on a busy server, the process
// has usually sent its COMMIT already, and would run out of work before a freeze succeeds. Corner therefore locks the
// table that the first statement of the transaction uses, freezes the process while its transaction waits for this
// lock, and then releases the lock. So the frozen process cannot have sent anything after the answer to the first
// statement.
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
			Pause(ctx, 20*time.Millisecond) // an error can be temporary, for example during a restart of the server
		}
	}
}

// cornerOnce is one try of Corner. If cornerOnce returns an error, the process is running.
func (a *Activity) cornerOnce(ctx context.Context, p *Process, name string, opening Opening) error {
	if err := a.freezeWaiting(ctx, p, name, opening); err != nil {
		return err
	}
	most, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	for most.Err() == nil {
		active, open, err := a.querySessions(most, name, opening)
		if err == nil && active == 0 {
			if open {
				return nil
			}
			break // the process has no further work; while the table is locked, other processes would only read more messages
		}
		Pause(most, 2*time.Millisecond)
	}
	return errors.Join(errElusive, p.Thaw())
}

// A query that counts two kinds of sessions: all sessions that wait for a table, and the sessions of the process that
// wait in a transaction which begins with the Opening. Other sessions of the process may only prepare the statement, as
// new connections do. For claims, sessions of other processes also count, because the process would claim the messages
// that these sessions receive.
const waiting = `select count(*), count(*) filter (where a.application_name = $1 and a.xact_start < a.query_start and a.query like $2)
	from pg_locks l join pg_stat_activity a using (pid)
	where (a.application_name = $1 or $2 <> '%') and l.relation = $3::regclass and not l.granted`

// freezeWaiting locks the table of the Opening, freezes the process while its transaction waits for this lock, and then
// releases the lock.
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
		// This query needs another connection, because pg_stat_activity does not change inside a
		// transaction.
		var sessions, inside int
		if err := a.DB.QueryRowContext(ctx, waiting, name, opening.text, opening.table).Scan(&sessions, &inside); err != nil {
			return err
		}
		switch {
		case inside > 0:
			return p.Freeze()
		case sessions > 0:
			return errBefore // the process begins its transaction after the table is unlocked
		}
	}
	return errElusive
}
