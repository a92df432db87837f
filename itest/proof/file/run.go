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

// run is a running proof.
type run struct {
	Proof
	*proof.Fleet
	m      *proof.Member // the process
	random *rand.Rand
	db     *processes.SQLite
	first  int // number of effects when the process was started
}

const inputFile = "webhooks.jsonl"

// start starts the process. Until the last kill the process follows its file, so that it cannot end before it
// is killed.
func (r *run) start(ctx context.Context) (err error) {
	policy := proof.Policy{Store: "sqlite: {path: " + databaseFile + "}", Source: fmt.Sprintf("file: {path: %s, format: envelope, follow: %t}", inputFile, r.Tally.Kills < r.Kills),
		Identity: `{id: "header:X-GitHub-Delivery"}`, ID: "header:X-GitHub-Delivery", Type: "header:X-GitHub-Event", Batch: r.Batch, Timeout: 30 * time.Second}
	if err := os.WriteFile(r.m.Path(r.m.Policy), policy.Text(), 0o644); err != nil {
		return err
	}
	if err := r.m.Start(); err != nil {
		return err
	}
	r.first, err = r.db.Effects(ctx)
	return err
}

// reach waits until this fraction of the effects is committed. After a kill it waits for at least one effect
// beyond those that existed when the process started, so that each process does some work.
func (r *run) reach(ctx context.Context, share float64) error {
	want, standing := max(int(share*float64(r.Input.IDs)), r.first+1), 0
	err := r.Until(ctx, func() (_ bool, err error) {
		standing, err = r.db.Effects(ctx)
		return standing >= want, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d effects are committed: %w", standing, want, err)
	}
	return nil
}

// killOne kills the process and restarts it. Every fifth kill comes at a random moment.
func (r *run) killOne(ctx context.Context) error {
	open, err := r.db.Catch(ctx, r.m.Process, r.m.Name, r.random, r.Tally.Kills%5 == 4)
	if err != nil {
		return err
	}
	if err := r.Kill(r.m, open); err != nil {
		return err
	}
	return r.start(ctx)
}

// finish waits until the process has read its file to the end, and computes the ledger.
func (r *run) finish(ctx context.Context) error {
	if err := r.m.Wait(0); err != nil {
		return err
	}
	if code := r.m.Status.ExitStatus(); code != 0 {
		return fmt.Errorf("the last run ended with exit code %d", code)
	}
	r.Over()
	aside, err := r.m.Parked()
	if err != nil {
		return err
	}
	left, err := r.m.Left(proof.Consumer)
	if err != nil {
		return err
	}
	return r.Tally.Audit(ctx, r.db.Conn, r.Input.sent(), aside+left, true)
}
