//go:build unix

// Package upgrade proves that consecutive releases work together on one store, as in a rolling deployment. It
// builds the binary of an earlier commit and the binary of the current tree. It runs both, one after the
// other and at the same time, and kills them alternately with SIGKILL. It computes the ledger from an effect
// log that belongs to the test.
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
	// First creates the tables and starts. Second upgrades the tables while First works. After each kill, a
	// reader continues with the other release.
	First, Second Release
	Store         Store
	Source        Source
	Feed          Feed
	// Kills is the number of kills. Every third kill comes at a random moment. Before each of the other
	// kills, the process is frozen in an open transaction.
	Kills int
	// Folder is the folder for all files of the run.
	Folder string
	// Progress receives a line for each step.
	Progress io.Writer
}

// run is a running Proof.
type run struct {
	*Proof
	slots  []*slot
	random *rand.Rand
	ledger *Ledger
}

// Run runs both releases until they have read all messages. Then each release retries rows of both and reads
// everything from the beginning. Call Ledger.Fault to see whether the proof succeeded. An error of Run means
// that the run itself failed.
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

// feeds returns how many feeds deliver each message.
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

// begin deploys the second release. The first release works while the second upgrades the tables. If the
// store allows two processes, the second then starts too.
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

// start starts a slot's release as a deployment does: it first upgrades the tables. If the release reports
// that the tables belong to a newer release, the slot starts the newer release instead.
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

// happen kills the processes in turn. After each kill the other release continues.
func (r *run) happen(ctx context.Context) error {
	for k := range r.Kills {
		if err := r.killOne(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// killOne kills a process after the effects of the earlier parts and a few more are committed. At this time
// the process still has work of the current part.
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

// untilEffects waits until the given number of effects is committed. It fails if a process ends before.
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

// finish stops the runs that follow their input, and reads the remaining messages.
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
