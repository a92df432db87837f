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

// errElusive says that a process runs and is to be cornered anew: it was not in a
// transaction, or ended the one that it was in.
var errElusive = errors.New("it had no transaction that stayed open")

// Corner freezes a process in a transaction that has written and that stays open
// and idle until the server ends it, as long as the process has anything to do.
//
// A transaction is idle for moments only, between the answer to its opening and
// the statements, which are sent together with COMMIT. Where the server has no
// time, most frozen processes have sent their COMMIT before the server reads it,
// and what a process has to do is over before it is met. So the server is kept
// from answering: the table that each transaction writes first is locked, the
// process is frozen while it waits for that, and only then the server goes on.
// What comes after the answer, nobody can have sent.
func (a *Activity) Corner(ctx context.Context, p *Process, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := a.cornerOnce(ctx, p, name)
		if err == nil || errors.Is(err, ErrEnded) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s was not met with an open transaction: %w", name, err)
		}
		Pause(ctx, 20*time.Millisecond) // while the server restarts, say
	}
}

// cornerOnce tries to corner the process; after an error it runs.
func (a *Activity) cornerOnce(ctx context.Context, p *Process, name string) error {
	if err := a.freezeWaiting(ctx, p, name); err != nil {
		return err
	}
	most, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	for most.Err() == nil {
		active, open, err := a.sessions(most, name)
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

// waiting counts the sessions of a process that wait for the table that its
// transactions write first, and those of them that are in a transaction. The rest
// only prepare the statement, as a new connection does.
const waiting = `select count(*), count(*) filter (where a.xact_start < a.query_start)
	from pg_locks l join pg_stat_activity a using (pid)
	where a.application_name = $1 and l.relation = 'semel_guard'::regclass and not l.granted`

// freezeWaiting freezes the process while its transaction waits for the table that
// it is to write first, which is free again afterwards.
func (a *Activity) freezeWaiting(ctx context.Context, p *Process, name string) error {
	tx, err := a.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `lock table semel_guard in share mode`); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < kept; Pause(ctx, time.Millisecond) {
		if alive, err := p.Running(); err != nil || !alive {
			return errors.Join(err, ErrEnded)
		}
		// Beside the transaction: inside one, the activity stays as it was first seen.
		var sessions, inside int
		if err := a.DB.QueryRowContext(ctx, waiting, name).Scan(&sessions, &inside); err != nil {
			return err
		}
		switch {
		case inside > 0:
			return p.Freeze()
		case sessions > 0:
			return errElusive // it gets to its transaction once the table is free
		}
	}
	return errElusive
}
