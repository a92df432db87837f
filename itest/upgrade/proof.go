//go:build unix

// Package upgrade proves that consecutive releases work together on one store, as they do during a rolling deployment.
// The package builds the binary of an earlier commit and the present one, runs both, one after the other and at once,
// kills them in turn with SIGKILL, and computes the ledger from an effect log that belongs to the test.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run of two releases on one store.
type Proof struct {
	// First creates the tables and starts; Second upgrades them while First works. Each kill moves a reader from one
	// release to the other.
	First, Second Release
	Store         Store
	Source        Source
	Feed          Feed
	// Kills is the number of kills. Every third kill happens at a random moment; before the others the process is frozen
	// with an open transaction.
	Kills int
	// Folder holds everything the run writes.
	Folder string
	// Progress gets a line for each step.
	Progress io.Writer
}

// run is a running Proof.
type run struct {
	*Proof
	slots  []*slot
	random *rand.Rand
	ledger *Ledger
}

// Run runs both releases until everything is read, lets each retry rows of both and read everything from the beginning,
// and returns the ledger; check it with Fault. An error means that the run itself failed.
func (p Proof) Run(ctx context.Context) (*Ledger, error) {
	r := &run{Proof: &p, random: rand.New(rand.NewPCG(p.Feed.Seed, 1)), ledger: newLedger(p)}
	defer r.killAll()
	began := time.Now()
	for _, step := range []func(context.Context) error{r.prepare, r.begin, r.happen, r.finish, r.audit, r.retry, r.readAgain} {
		if err := step(ctx); err != nil {
			return r.ledger, fmt.Errorf("%w; the logs are in %s", err, p.Folder)
		}
	}
	r.ledger.Seconds = time.Since(began).Seconds()
	return r.ledger, nil
}

// prepare writes the first part of the feeds and creates the tables of the test.
func (r *run) prepare(ctx context.Context) error {
	for n, release := range []Release{r.First, r.Second}[:r.Store.Readers()] {
		s := &slot{proof: r.Proof, name: fmt.Sprintf("reader-%d", n+1), release: release}
		if n < r.feeds() {
			s.deliveries = r.Feed.deliveries(uint64(n))
		}
		r.ledger.Deliveries += len(s.deliveries)
		r.slots = append(r.slots, s)
	}
	return errors.Join(r.extend(0), r.Store.Exec(ctx, effectLog), r.Store.Exec(ctx, gateTable))
}

// feeds returns how many times each message is delivered in total.
func (p Proof) feeds() int { return p.Source.Feeds(p.Store.Readers()) }

// extend writes the n-th part of each feed.
func (r *run) extend(n int) error {
	for _, s := range r.slots {
		if err := s.extend(n); err != nil {
			return err
		}
	}
	return nil
}

// begin performs the deployment: the first release works while the second upgrades the tables and then starts, if the
// store allows two processes.
func (r *run) begin(ctx context.Context) error {
	if err := r.start(r.slots[0]); err != nil {
		return err
	}
	if err := r.untilEffects(ctx, 1); err != nil {
		return err
	}
	upgrade := slot{proof: r.Proof, name: "upgrade", release: r.Second}
	if err := upgrade.migrate(); err != nil && !errors.Is(err, errNewer) {
		return err
	}
	for _, s := range r.slots[1:] {
		if err := r.start(s); err != nil {
			return err
		}
	}
	return nil
}

// start starts the slot's release as a deployment does, after it has upgraded the tables. If it reports that they belong
// to a newer release, the newer release runs instead.
func (r *run) start(s *slot) error {
	err := s.migrate()
	if errors.Is(err, errNewer) {
		r.ledger.Refusals++
		s.release = r.other(s.release)
		err = s.migrate()
	}
	if err != nil {
		return err
	}
	return s.start(true)
}

func (r *run) other(than Release) Release {
	if than.Name == r.First.Name {
		return r.Second
	}
	return r.First
}

// happen kills one process after the other, and the other release takes over.
func (r *run) happen(ctx context.Context) error {
	for k := range r.Kills {
		if err := r.killOne(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// killOne kills a process when the effects of the previous parts are committed, and a few more, so that the process
// still has work of the current part.
func (r *run) killOne(ctx context.Context, k int) error {
	standing, err := r.Store.Effects(ctx)
	if err != nil {
		return err
	}
	if err := r.extend(k + 1); err != nil {
		return err
	}
	share := r.Feed.effects() * (k + 1) / (r.Kills + 1)
	if err := r.untilEffects(ctx, max(share, standing)+1+r.random.IntN(10)); err != nil {
		return err
	}
	s := r.slots[k%len(r.slots)]
	open, err := r.Store.Catch(ctx, s.process, s.name, r.random, k%3 == 2)
	if err != nil {
		return err
	}
	if err := s.process.Kill(); err != nil {
		return err
	}
	r.ledger.Kills++
	if open {
		r.ledger.Open++
	}
	r.say("kill %d of %d: %s by %s, open transaction: %v", k+1, r.Kills, s.name, s.release.Name, open)
	s.release = r.other(s.release)
	return r.start(s)
}

// untilEffects waits until this many effects are committed. No process may end before that.
func (r *run) untilEffects(ctx context.Context, want int) error {
	for {
		for _, s := range r.slots {
			if s.process == nil {
				continue
			}
			if alive, err := s.process.Running(); err != nil || !alive {
				return fmt.Errorf("%s by %s: %w (%v)", s.name, s.release.Name, errors.Join(err, processes.ErrEnded), s.process.Status)
			}
		}
		standing, err := r.Store.Effects(ctx)
		if err != nil || standing >= want {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d effects stand: %w", standing, want, ctx.Err())
		}
		processes.Pause(ctx, 5*time.Millisecond)
	}
}

// finish stops the runs that never end by themselves, and lets the rest be read.
func (r *run) finish(context.Context) error {
	for _, s := range r.slots {
		if err := s.process.End(); err != nil {
			return err
		}
	}
	for _, s := range r.slots {
		if err := s.end(append(r.Source.Rest(), "--log-level", "debug")...); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) killAll() {
	for _, s := range r.slots {
		if s.process != nil {
			_ = s.process.Kill()
		}
	}
}

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.Progress, format+"\n", args...) }
