//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long a process is waited for that is to begin a transaction, all tries
// together, and a server that is to answer it.
const (
	patience = 3 * time.Minute
	answered = 10 * time.Second
)

// errElusive says that a process was thawed and is to be cornered anew.
var errElusive = errors.New("its transaction did not stay open")

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
		if open, err := a.Settled(most, name); err == nil && open {
			return nil
		}
		Pause(most, 2*time.Millisecond)
	}
	return errors.Join(errElusive, p.Thaw())
}

// freezeWaiting freezes the process while it waits for the table that its
// transaction is to write first, which is free again afterwards.
func (a *Activity) freezeWaiting(ctx context.Context, p *Process, name string) error {
	tx, err := a.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `lock table semel_guard in share mode`); err != nil {
		return err
	}
	for waits := false; !waits; {
		if alive, err := p.Running(); err != nil || !alive {
			return errors.Join(err, ErrEnded)
		}
		// Beside the transaction: inside one, the activity stays as it was first seen.
		if err := a.DB.QueryRowContext(ctx, `select exists (
			select 1 from pg_locks l join pg_stat_activity a using (pid)
			where a.application_name = $1 and l.relation = 'semel_guard'::regclass and not l.granted)`, name).Scan(&waits); err != nil {
			return err
		}
		Pause(ctx, time.Millisecond)
	}
	return p.Freeze()
}
