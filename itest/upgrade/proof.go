//go:build unix

// Package upgrade is a fault test: it checks that consecutive releases work together on one store, as in a rolling
// deployment. The test builds the binary of an earlier commit and the binary of the current tree. The test runs both
// binaries, one after the other and at the same time, and kills them alternately with SIGKILL. The ledger is computed
// from an effect log that belongs to the test.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is the configuration of one run of two releases on one store.
type Proof struct {
	// First creates the tables and starts. Second upgrades the tables while First works. After each kill, a
	// reader continues with the other release.
	First, Second Release
	Store         Store
	Source        Source
	Feed          Feed
	// Kills is the number of kills. Every third kill comes at a random moment. The process is frozen in an open
	// transaction before each other kill.
	Kills int
	// Stage is the environment in which the fault test runs.
	proof.Stage
}

// run is the state of a running Proof.
type run struct {
	*Proof
	slots  []*slot
	random *rand.Rand
	ledger *Ledger
}

// Run runs both releases until all messages are read. In the end, each release retries rows of both releases and reads
// all messages from the beginning. Run returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	p.Stage = s
	r := &run{Proof: &p, random: rand.New(rand.NewPCG(p.Feed.Seed, 1)), ledger: newLedger(p)}
	defer r.killAll()
	began := time.Now()
	r.prepare(ctx)
	r.begin(ctx)
	r.happen(ctx)
	r.finish()
	r.audit(ctx)
	r.retry(ctx)
	r.readAgain(ctx)
	r.ledger.Seconds = proof.Since(began)
	return *r.ledger
}

// prepare writes the first part of the feeds and creates the tables of the test.
func (r *run) prepare(ctx context.Context) {
	for n, release := range []Release{r.First, r.Second}[:r.Store.Readers()] {
		s := &slot{proof: r.Proof, name: fmt.Sprintf("reader-%d", n+1), release: release}
		if n < r.countFeeds() {
			s.deliveries = r.Feed.makeDeliveries(uint64(n))
		}
		r.ledger.Deliveries += len(s.deliveries)
		r.slots = append(r.slots, s)
	}
	r.extend(0)
	proof.Check(errors.Join(r.Store.Exec(ctx, effectLog), r.Store.Exec(ctx, gateTable)))
}

// countFeeds returns the number of feeds that deliver each message.
func (p Proof) countFeeds() int { return p.Source.Feeds(p.Store.Readers()) }

// The method extend writes the n-th part of each feed.
func (r *run) extend(n int) {
	for _, s := range r.slots {
		proof.Check(r.Source.Extend(s.name, selectPart(s.deliveries, n, r.Kills+1)))
	}
}

// begin deploys the second release. The first release works while the second release upgrades the tables. If the store
// allows two processes, the second release starts after the upgrade.
func (r *run) begin(ctx context.Context) {
	r.start(r.slots[0])
	r.untilEffects(ctx, 1)
	upgrade := slot{proof: r.Proof, name: "upgrade", release: r.Second}
	if err := upgrade.migrate(); !errors.Is(err, errNewer) {
		proof.Check(err)
	}
	for _, s := range r.slots[1:] {
		r.start(s)
	}
}

// start starts a slot's release like a deployment, which first upgrades the tables. If the release reports that the
// tables belong to a newer release, the slot starts the newer release instead.
func (r *run) start(s *slot) {
	err := s.migrate()
	if errors.Is(err, errNewer) {
		r.ledger.Refusals++
		s.release = r.otherRelease(s.release)
		err = s.migrate()
	}
	proof.Check(err)
	proof.Check(s.start(true))
}

func (r *run) otherRelease(than Release) Release {
	if than.Name == r.First.Name {
		return r.Second
	}
	return r.First
}

// happen kills one process after the other. Each kill happens when the effects of the previous parts and a few effects
// of the current part are committed, so that the process still has work. After a kill, the other release continues.
func (r *run) happen(ctx context.Context) {
	for k := range r.Kills {
		standing := proof.Must(r.Store.Effects(ctx))
		r.extend(k + 1)
		share := r.Feed.countEffects() * (k + 1) / (r.Kills + 1)
		r.untilEffects(ctx, max(share, standing)+1+r.random.IntN(10))
		s := r.slots[k%len(r.slots)]
		open := proof.Must(r.Store.Catch(ctx, s.process, s.name, r.random, k%3 == 2))
		proof.Check(s.process.Kill())
		r.ledger.Kills++
		if open {
			r.ledger.Open++
		}
		r.Say("kill %d of %d: %s by %s, open transaction: %v", k+1, r.Kills, s.name, s.release.Name, open)
		s.release = r.otherRelease(s.release)
		r.start(s)
	}
}

// untilEffects waits until the given number of effects is committed. If a process ends before, untilEffects returns an
// error.
func (r *run) untilEffects(ctx context.Context, want int) {
	proof.Until(ctx, 5*time.Millisecond, func() bool {
		for _, s := range r.slots {
			if s.process != nil && !proof.Must(s.process.Running()) {
				proof.Check(fmt.Errorf("%s by %s: %w (%v)", s.name, s.release.Name, processes.ErrEnded, s.process.Status))
			}
		}
		return proof.Must(r.Store.Effects(ctx)) >= want
	})
}

// finish stops the runs that follow their input, and reads the remaining messages.
func (r *run) finish() {
	for _, s := range r.slots {
		proof.Check(s.process.End())
	}
	for _, s := range r.slots {
		proof.Check(s.end(append(r.Source.Rest(), "--log-level", "debug")...))
	}
}

func (r *run) killAll() {
	for _, s := range r.slots {
		if s.process != nil {
			_ = s.process.Kill()
		}
	}
}
