//go:build linux

package proofkafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/processes"
)

// member is one process of the fleet, over all its restarts.
type member struct {
	processes.Command
	name     string
	process  *processes.Process
	terminal *terminal
	// delivered are the deliveries of the runs that are over.
	delivered int64
}

// add starts a further member. Every third is a static one.
func (r *run) add() error {
	r.started++
	name := fmt.Sprintf("member-%d", r.started)
	policy := dynamicPolicy
	if r.started%3 == 1 {
		policy = staticPolicy
	}
	m := &member{name: name, Command: processes.Command{Binary: r.Binary, Folder: r.Folder, Policy: policy, Log: name + ".log", Summary: name + ".json",
		Env: []string{"DATABASE=" + r.server.DSN() + "&application_name=" + name, "MEMBER=" + name}}}
	r.plant(m)
	if err := m.start(); err != nil {
		return err
	}
	r.members = append(r.members, m)
	return nil
}

func (m *member) start() (err error) {
	if m.terminal, err = openTerminal(filepath.Join(m.Folder, m.Log)); err != nil {
		return err
	}
	m.Command.Terminal = m.terminal.end
	m.process, err = m.Command.Start()
	m.terminal.given()
	return err
}

// over counts the deliveries of a run that has ended: as it said itself, or,
// if it was killed, as its terminal last showed.
func (m *member) over() {
	m.terminal.wait()
	shown := m.terminal.deliveries()
	if counts, err := m.Counts("counter"); err == nil {
		shown = max(shown, counts.Deliveries)
	}
	m.delivered += shown
}

func (m *member) kill() error {
	if err := m.process.Kill(); err != nil {
		return err
	}
	m.over()
	return nil
}

// tend starts members again that ended by themselves, as a supervisor does:
// one that starts while a server is away says so and ends.
func (r *run) tend() error {
	for _, m := range r.members {
		alive, err := m.process.Running()
		if err != nil {
			return err
		}
		if alive {
			continue
		}
		m.over()
		if m.process.Status.ExitStatus() != 1 || r.ledger.Again >= len(r.members)*(r.ledger.BrokerRestarts+r.ledger.DatabaseRestarts) {
			return fmt.Errorf("%s: %w: %v", m.name, processes.ErrEnded, m.process.Status)
		}
		r.ledger.Again++
		if err := m.start(); err != nil {
			return err
		}
	}
	return r.feed.err()
}

// tendUntil looks after the members until what is waited for is there.
func (r *run) tendUntil(ctx context.Context, there func() bool) error {
	for !there() {
		if err := r.tend(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		processes.Pause(ctx, 10*time.Millisecond)
	}
	return nil
}

// tendFor looks after the members for so long.
func (r *run) tendFor(ctx context.Context, d time.Duration) error {
	until := time.Now().Add(d)
	return r.tendUntil(ctx, func() bool { return !time.Now().Before(until) })
}

// maxHunt is how long a member with an open transaction is looked for.
const maxHunt = 90 * time.Second

// maxCorner is how long the fleet stands still for a member that may have
// nothing to do.
const maxCorner = 5 * time.Second

// catch freezes one member after the other until one has written in a
// transaction that is open, and returns it frozen. When none
// is met at random moments for long, one is cornered.
func (r *run) catch(ctx context.Context) (*member, error) {
	ctx, cancel := context.WithTimeout(ctx, maxHunt)
	defer cancel()
	began := time.Now()
	for ctx.Err() == nil {
		if err := r.tend(); err != nil {
			return nil, err
		}
		r.turn++
		m := r.members[r.turn%len(r.members)]
		for range 10 {
			processes.Pause(ctx, time.Duration(r.random.Int64N(int64(5*time.Millisecond))))
			err := m.process.Freeze()
			if errors.Is(err, processes.ErrEnded) {
				break // tend starts it again
			}
			if err != nil {
				return nil, err
			}
			if open, err := r.db.Settled(ctx, m.name); err == nil && open {
				return m, nil
			}
			if err := m.process.Thaw(); err != nil {
				return nil, err
			}
		}
		if time.Since(began) > maxHunt/2 && r.cornered(ctx, m) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("for %v no member was met with an open transaction", maxHunt)
}

// cornered tries to freeze a member where its transaction opens; after a failure
// it runs, or has ended and is started again. A plain loop has no guard to wait
// for.
func (r *run) cornered(ctx context.Context, m *member) bool {
	if r.plain() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxCorner)
	defer cancel()
	return r.db.Corner(ctx, m.process, m.name) == nil
}

// end has a member drain and end. One that can't leave the group in time drains
// too, says so and fails; a plain loop fails as it likes.
func (r *run) end(m *member) error {
	err := m.process.End()
	m.over()
	if err == nil || r.plain() {
		return nil
	}
	if _, drained := m.Counts("counter"); drained == nil && m.process.Status.ExitStatus() == 1 {
		r.say("%s drained and ended with 1: %s", m.name, m.lastWords())
		r.ledger.Unleft++
		return nil
	}
	return fmt.Errorf("%s: %w", m.name, err)
}

// lastWords is the last line of the log.
func (m *member) lastWords() string {
	text, _ := os.ReadFile(filepath.Join(m.Folder, m.Log))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// endAll has the members drain and end.
func (r *run) endAll() error {
	for _, m := range r.members {
		if err := r.end(m); err != nil {
			return err
		}
		r.ledger.Delivered += m.delivered
	}
	r.members = nil
	if r.frozen == nil {
		return nil
	}
	var err error
	r.ledger.Delivered += r.frozen.delivered + r.frozen.terminal.deliveries()
	r.ledger.Frozen, err = r.frozen.process.Stopped()
	return err
}

// killAll is for the end, whatever it was.
func (r *run) killAll() {
	if r.frozen != nil {
		r.members = append(r.members, r.frozen)
	}
	for _, m := range r.members {
		_ = m.process.Kill()
		m.terminal.wait()
	}
}
