//go:build unix

package file

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	m      *proof.Member // the process
	random *rand.Rand
	db     *processes.SQLite
	first  int // number of effects when the process was started
}

const inputFile = "webhooks.jsonl"

// start starts the process. Until the last kill, the process follows its file, so that the process cannot end before it
// is killed.
func (r *run) start(ctx context.Context) {
	policy := proof.Policy{Store: "sqlite: {path: " + databaseFile + "}", Source: fmt.Sprintf("file: {path: %s, format: envelope, follow: %t}", inputFile, r.Tally.Kills < r.Kills),
		Identity: `{id: "header:X-GitHub-Delivery"}`, ID: "header:X-GitHub-Delivery", Type: "header:X-GitHub-Event", Batch: r.Batch, Timeout: 30 * time.Second}
	r.Write(r.m.Policy, policy.Text())
	r.m.Start()
	r.first = proof.Must(r.db.Effects(ctx))
}

// reach waits until the given share of the effects, a number from 0 to 1, is committed. After a kill, reach waits for
// at least one new effect of the restarted process, so that each process does some work.
func (r *run) reach(ctx context.Context, share float64) {
	want := max(int(share*float64(r.Input.IDs)), r.first+1)
	proof.During(fmt.Sprintf("until %d effects are committed", want), func() {
		r.Until(ctx, func() bool { return proof.Must(r.db.Effects(ctx)) >= want })
	})
}

// killOne kills the process and restarts it. Every fifth kill comes at a random moment.
func (r *run) killOne(ctx context.Context) {
	r.Kill(r.m, proof.Must(r.db.Catch(ctx, r.m.Process, r.m.Name, r.random, r.Tally.Kills%5 == 4)))
	r.start(ctx)
}
