//go:build unix

package file

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// run is a proof under way, on either database.
type run struct {
	*proof.Fleet
	input   Input
	store   string // how the policy reaches the database
	batch   int
	timeout time.Duration
	random  *rand.Rand
	db      database
	reader  ledger.Reader // of the same database
}

// database is the proof's own view of where the effects are.
type database interface {
	Effects(context.Context) (int, error)
	Catch(ctx context.Context, p *processes.Process, name string, random *rand.Rand, blind bool) (open bool, err error)
}

// inputFile is what a member reads.
func inputFile(m *proof.Member) string { return m.Name + ".jsonl" }

// start starts a member. With follow it never ends by itself.
func (r *run) start(m *proof.Member, follow bool) error {
	policy := proof.Policy{Store: r.store, Source: fmt.Sprintf("file: {path: %s, format: envelope, follow: %t}", inputFile(m), follow),
		Identity: `{id: "header:X-GitHub-Delivery"}`, ID: "header:X-GitHub-Delivery", Type: "header:X-GitHub-Event", Batch: r.batch, Timeout: r.timeout}
	if err := os.WriteFile(m.Path(m.Policy), policy.Text(), 0o644); err != nil {
		return err
	}
	return m.Start()
}

// write writes deliveries of these ids for a member, and returns the size of its
// file.
func (r *run) write(m *proof.Member, how int, ids []int) (int64, error) {
	return r.input.write(m.Path(inputFile(m)), how, ids)
}

// reach waits until such a share of the effects stands.
func (r *run) reach(ctx context.Context, share float64) error {
	return r.untilEffects(ctx, int(share*float64(r.input.IDs)))
}

// untilEffects waits until so many effects stand. While a server restarts, it
// does not say how many do.
func (r *run) untilEffects(ctx context.Context, want int) error {
	standing := 0
	err := r.Until(ctx, func() (bool, error) {
		n, err := r.db.Effects(ctx)
		standing = max(standing, n)
		if err != nil && r.Server != nil {
			return false, nil
		}
		return n >= want, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d effects stand: %w", standing, want, err)
	}
	return nil
}

// kill kills a member.
func (r *run) kill(ctx context.Context, m *proof.Member, blind bool) error {
	open, err := r.db.Catch(ctx, m.Process, m.Name, r.random, blind)
	if err != nil {
		return err
	}
	return r.Kill(m, open)
}

// finish waits until the members have read to the end of their files.
func (r *run) finish() error {
	for _, m := range r.Members {
		if err := m.Wait(0); err != nil {
			return err
		}
		if code := m.Status.ExitStatus(); code != 0 {
			return fmt.Errorf("the last run of %s ended with %d", m.Name, code)
		}
	}
	r.Over()
	return nil
}

// audit adds up what the members did, who have ended.
func (r *run) audit(ctx context.Context) error {
	aside, err := r.Members[0].Parked()
	if err != nil {
		return err
	}
	for _, m := range r.Members {
		left, err := m.Left(proof.Consumer)
		if err != nil {
			return err
		}
		aside += left
	}
	return r.Tally.Audit(ctx, r.reader, r.input.sent(), aside, true)
}
