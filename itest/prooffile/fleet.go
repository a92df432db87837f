//go:build unix

package prooffile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/services"
)

// Fleet is a proof into PostgreSQL: three processes of one consumer, each of
// which reads all deliveries in an order of its own. One is frozen in an open
// transaction and never goes on; the others are killed, and the server is
// restarted under them.
type Fleet struct {
	Input Input
	// Binary is the built semel; Folder holds everything the run writes, but
	// for the database.
	Binary, Folder string
	// Batch is the most messages of a transaction.
	Batch int
	// Timeout is what a handler has. The server gives an idle transaction
	// that, and semel's grace of 10 s.
	Timeout time.Duration
	// Kills is how often a process is killed, Restarts how often the server,
	// every other time with SIGKILL.
	Kills, Restarts int
	// Progress gets a line for each step.
	Progress io.Writer
}

const (
	members = 3
	// victim is the member that is frozen.
	victim = members - 1
	// grace is what the server gives an idle transaction beyond Timeout.
	grace = 10 * time.Second
)

// fleet is a Fleet under way.
type fleet struct {
	Fleet
	db      *processes.Activity
	server  *services.Server
	random  *rand.Rand
	members []*member
	ledger  *FleetLedger
	second  [][]int // what each member reads after the freeze
}

// Run proves on a private server and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Fleet) Run(ctx context.Context, t testing.TB) (FleetLedger, error) {
	ledger := FleetLedger{Readers: members, Deliveries: p.Input.Deliveries, Expected: p.Input.IDs, IdleSeconds: (p.Timeout + grace).Seconds()}
	f := &fleet{Fleet: p, random: rand.New(rand.NewPCG(p.Input.Seed, 2)), ledger: &ledger}
	f.server = services.StartPostgres(t, services.Options{})
	db, err := processes.OpenActivity(f.server.DSN())
	if err != nil {
		return ledger, err
	}
	defer db.Close()
	f.db = db
	if err := f.prepare(); err != nil {
		return ledger, err
	}
	defer f.killAll()
	began := time.Now()
	if err := f.run(ctx); err != nil {
		return ledger, fmt.Errorf("%w; the logs are in %s", err, p.Folder)
	}
	ledger.Seconds = time.Since(began).Seconds()
	return ledger, f.audit(ctx)
}

// prepare writes the first part of each member's file.
func (f *fleet) prepare() error {
	if err := writeSetup(f.Folder, postgresSetup); err != nil {
		return err
	}
	total := int64(0)
	for n := range members {
		m := newMember(f.Fleet, f.server.DSN(), n)
		first, second := f.Input.parts(n)
		size, err := f.Input.write(m.path(m.input), syscall.O_TRUNC, first)
		if err != nil {
			return err
		}
		total += size
		f.members, f.second = append(f.members, m), append(f.second, second)
	}
	f.say("%d processes, each with %d deliveries of %d webhooks; the first part has %.0f MB", members, f.Input.Deliveries, f.Input.IDs, float64(total)/1e6)
	return nil
}

func (f *fleet) run(ctx context.Context) error {
	for _, m := range f.members {
		if err := m.start(true); err != nil {
			return err
		}
	}
	before, after := f.events()
	if err := f.happen(ctx, before); err != nil {
		return err
	}
	if err := f.freezeOne(ctx); err != nil {
		return err
	}
	for n := range victim {
		if err := f.extend(n); err != nil {
			return err
		}
	}
	if err := f.happen(ctx, after); err != nil {
		return err
	}
	return f.finish(ctx)
}

// event is what happens when so many per cent of the effects stand.
type event struct {
	percent int
	do      func(context.Context) error
}

// events are spread over both parts of the input: effects 4 to 38 % before the
// freeze at 42 %, and 60 to 90 % after it.
func (f *fleet) events() (before, after []event) {
	spread := func(count int, do func(n int) func(context.Context) error) {
		early := (count + 1) / 2
		for n := range early {
			before = append(before, event{4 + 34*n/max(early, 1), do(n)})
		}
		for n := range count - early {
			after = append(after, event{60 + 30*n/max(count-early, 1), do(early + n)})
		}
	}
	spread(f.Restarts, func(n int) func(context.Context) error {
		return func(context.Context) error { f.restart(n); return nil }
	})
	spread(f.Kills, func(n int) func(context.Context) error {
		return func(ctx context.Context) error { return f.killOne(ctx, n) }
	})
	byMark := func(a, b event) int { return a.percent - b.percent }
	slices.SortStableFunc(before, byMark)
	slices.SortStableFunc(after, byMark)
	return before, after
}

func (f *fleet) happen(ctx context.Context, events []event) error {
	for _, e := range events {
		if err := f.untilEffects(ctx, f.Input.IDs*e.percent/100); err != nil {
			return err
		}
		if err := e.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startAgain does what a supervisor does with a process that started while the
// server was away: it ended and said so. Each can do so once a restart.
func (f *fleet) startAgain(m *member) error {
	if m.process.Status.ExitStatus() != 1 || f.ledger.Again >= members*f.ledger.Restarts {
		return fmt.Errorf("%w: %v", processes.ErrEnded, m.process.Status)
	}
	f.ledger.Again++
	return m.start(true)
}

// untilEffects waits until so many effects stand; no member may end meanwhile.
func (f *fleet) untilEffects(ctx context.Context, want int) error {
	for {
		for _, m := range f.members {
			alive, err := m.process.Running()
			if err == nil && !alive {
				err = f.startAgain(m)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		done, err := f.db.Effects(ctx)
		if err == nil && done >= want {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d effects stand: %w", done, want, errors.Join(ctx.Err(), err))
		}
		processes.Pause(ctx, 5*time.Millisecond)
	}
}

func (f *fleet) restart(n int) {
	how := "SIGKILL"
	if n%2 == 0 {
		f.server.Kill()
	} else {
		how = "stop"
		f.server.Stop()
	}
	f.server.Start()
	f.ledger.Restarts++
	f.say("restart %d of %d of the server, by %s", f.ledger.Restarts, f.Restarts, how)
}

// killOne kills a member and starts it again. Every third kill is blind.
func (f *fleet) killOne(ctx context.Context, n int) error {
	m := f.members[n%victim]
	open, err := f.db.Catch(ctx, m.process, m.name, f.random, n%3 == 2)
	if err != nil {
		return err
	}
	if err := m.process.Kill(); err != nil {
		return err
	}
	f.ledger.Kills++
	if open {
		f.ledger.Open++
	}
	f.say("kill %d of %d: %s, open transaction: %v", f.ledger.Kills, f.Kills, m.name, open)
	return m.start(true)
}

// extend writes the second part of a member's file.
func (f *fleet) extend(n int) error {
	m := f.members[n]
	_, err := f.Input.write(m.path(m.input), syscall.O_APPEND, f.second[n])
	return err
}

// freezeOne freezes the victim for good and waits until the server ends its
// transaction, while the others go on. The victim gets all of its file before:
// one that has read to the end begins no transaction.
func (f *fleet) freezeOne(ctx context.Context) error {
	if err := f.untilEffects(ctx, f.Input.IDs*42/100); err != nil {
		return err
	}
	if err := f.extend(victim); err != nil {
		return err
	}
	m := f.members[victim]
	if err := f.db.Corner(ctx, m.process, m.name); err != nil {
		return err
	}
	frozen := time.Now()
	f.say("%s is frozen in an open transaction", m.name)
	for {
		open, err := f.db.Open(ctx, m.name)
		if err != nil {
			return err
		}
		if since := time.Since(frozen); !open {
			f.ledger.FrozenSeconds = since.Seconds()
			f.say("the server ended its transaction after %.1f s", since.Seconds())
			return nil
		} else if since > f.Timeout+2*grace {
			return fmt.Errorf("the transaction of %s is open after %v", m.name, since)
		}
		processes.Pause(ctx, 20*time.Millisecond)
	}
}

// patience is how long the effects may take to be complete before the members
// are ended. Whether they are, the ledger says.
const patience = 30 * time.Second

// finish lets the members that are not frozen read to the end of their files.
func (f *fleet) finish(ctx context.Context) error {
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.untilEffects(most, f.Input.IDs); err != nil && most.Err() == nil {
		return err
	}
	for _, m := range f.members[:victim] {
		if err := m.process.End(); err != nil {
			return err
		}
		if err := m.start(false); err != nil {
			return err
		}
	}
	for _, m := range f.members[:victim] {
		if err := m.process.Wait(0); err != nil {
			return err
		}
		if code := m.process.Status.ExitStatus(); code != 0 {
			return fmt.Errorf("the last run of %s ended with %d", m.name, code)
		}
	}
	return nil
}

func (f *fleet) killAll() {
	for _, m := range f.members {
		if m.process != nil {
			_ = m.process.Kill()
		}
	}
}

func (f *fleet) say(format string, args ...any) { fmt.Fprintf(f.Progress, format+"\n", args...) }
