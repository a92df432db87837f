//go:build unix

package file

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Fleet is a proof into PostgreSQL: three processes of one consumer, each of
// which reads all deliveries in an order of its own. One is frozen in an open
// transaction and never goes on; the others are killed, and the server is
// restarted under them.
type Fleet struct {
	Input Input
	// Batch is the most messages of a transaction.
	Batch int
	// Timeout is what a handler has. The server gives an idle transaction
	// that, and semel's grace of 10 s.
	Timeout time.Duration
	// Kills is how often a process is killed, Open how many of them must meet an
	// open transaction, Restarts how often the server is, every other time with
	// SIGKILL.
	Kills, Open, Restarts int
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
	*run
	ledger *FleetLedger
	frozen *proof.Member
	second map[*proof.Member][]int // what each reads after the freeze
}

// Run proves on a private server and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Fleet) Run(ctx context.Context, s proof.Stage) (FleetLedger, error) {
	l := FleetLedger{Readers: members, Deliveries: p.Input.Deliveries, IdleSeconds: proof.Seconds((p.Timeout + grace).Seconds()), least: p.Open}
	f := &fleet{Fleet: p, ledger: &l, second: map[*proof.Member][]int{}, run: &run{input: p.Input, store: `postgres: {url: "${DATABASE}"}`,
		batch: p.Batch, timeout: p.Timeout, random: rand.New(rand.NewPCG(p.Input.Seed, 2))}}
	var err error
	if f.run.Fleet, err = proof.NewFleet(ctx, s, proof.Setup, &l.Tally); err != nil {
		return l, err
	}
	defer f.Close()
	if err := f.OnPostgres(); err != nil {
		return l, err
	}
	f.db, f.reader = f.Activity, f.Activity.DB
	err = f.prove(ctx)
	return l, err
}

// prove has the members read the first part of their files until one of them is
// frozen, and then the rest.
func (f *fleet) prove(ctx context.Context) error {
	total := int64(0)
	for n := range members {
		m := f.Add()
		first, second := f.Input.parts(n)
		size, err := f.write(m, os.O_TRUNC, first)
		if err != nil {
			return err
		}
		total += size
		f.second[m] = second
	}
	f.Say("%d processes, each with %d deliveries of %d webhooks; the first part has %.0f MB", members, f.Input.Deliveries, f.Input.IDs, float64(total)/1e6)
	f.frozen = f.Members[victim]
	for _, m := range f.Members {
		if err := f.start(m, true); err != nil {
			return err
		}
	}
	if err := f.events().Run(ctx, f.reach); err != nil {
		return err
	}
	if err := f.end(ctx); err != nil {
		return err
	}
	if err := f.audit(ctx); err != nil {
		return err
	}
	var err error
	f.ledger.Frozen, err = f.frozen.Stopped()
	return err
}

// events are spread over both parts of the input: effects 4 to 38 % before the
// freeze at 42 %, and 60 to 90 % after it.
func (f *fleet) events() proof.Schedule {
	all := proof.Schedule{{At: 0.42, Do: f.freezeOne}}
	spread := func(count int, do func(context.Context) error) {
		early := (count + 1) / 2
		all.Spread(0.04, 0.38, early, do)
		all.Spread(0.60, 0.90, count-early, do)
	}
	spread(f.Restarts, f.RestartServer)
	spread(f.Kills, f.killOne)
	return all
}

// killOne kills a member and starts it again. Every third kill is blind.
func (f *fleet) killOne(ctx context.Context) error {
	n := f.Tally.Kills
	m := f.Members[n%victim]
	if err := f.kill(ctx, m, n%3 == 2); err != nil {
		return err
	}
	return f.start(m, true)
}

// extend writes the second part of a member's file.
func (f *fleet) extend(m *proof.Member) error {
	_, err := f.write(m, os.O_APPEND, f.second[m])
	return err
}

// freezeOne freezes a member for good and waits until the server ends its
// transaction, while the others go on. It gets all of its file before:
// one that has read to the end begins no transaction.
func (f *fleet) freezeOne(ctx context.Context) error {
	m := f.frozen
	if err := f.extend(m); err != nil {
		return err
	}
	if err := f.Activity.Corner(ctx, m.Process, m.Name, processes.Marking()); err != nil {
		return err
	}
	f.Remove(m)
	frozen := time.Now()
	f.Say("%s is frozen in an open transaction", m.Name)
	if err := f.untilEnded(ctx, m); err != nil {
		return err
	}
	f.ledger.FrozenSeconds = proof.Seconds(time.Since(frozen).Seconds())
	f.Say("the server ended its transaction after %.1f s", f.ledger.FrozenSeconds)
	for _, m := range f.Members {
		if err := f.extend(m); err != nil {
			return err
		}
	}
	return nil
}

// untilEnded waits until the server has ended the transaction of a member that
// stands still.
func (f *fleet) untilEnded(ctx context.Context, m *proof.Member) error {
	most, cancel := context.WithTimeout(ctx, f.Timeout+2*grace)
	defer cancel()
	err := f.Until(most, func() (bool, error) {
		open, err := f.Activity.Open(ctx, m.Name)
		return !open, err
	})
	if err != nil {
		return fmt.Errorf("the transaction of %s, which is frozen: %w", m.Name, err)
	}
	return nil
}

// patience is how long the effects may take to be complete before the members
// are ended. Whether they are, the ledger says.
const patience = 30 * time.Second

// end lets the members that are not frozen read to the end of their files.
func (f *fleet) end(ctx context.Context) error {
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.untilEffects(most, f.Input.IDs); err != nil && most.Err() == nil {
		return err
	}
	for _, m := range f.Members {
		if err := m.End(); err != nil {
			return err
		}
		if err := f.start(m, false); err != nil {
			return err
		}
	}
	return f.finish()
}
