//go:build unix

// Package file proves with real input that the messages of a file take effect once, although the process that
// applies them is killed again and again. The proof runs the binary, kills it with SIGKILL while it works,
// and computes the ledger from the database.
package file

import (
	"context"
	"math/rand/v2"
	"path/filepath"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run with SQLite.
type Proof struct {
	Input Input
	// Batch is the maximum number of messages in a transaction.
	Batch int
	// Kills is how often the process is killed. Open is how many of these kills must meet an open
	// transaction. Every fifth kill comes at a random moment. Before each of the other kills the proof
	// freezes the process in an open transaction.
	Kills, Open int
}

const databaseFile = "counts.db"

// Run writes the input, runs semel until it ends by itself and returns the ledger. Call Ledger.Fault to see
// whether the proof succeeded. An error of Run means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{Deliveries: p.Input.Deliveries, Absorbed: p.Input.Deliveries - p.Input.IDs, least: p.Open}
	db, err := processes.OpenSQLite(ctx, filepath.Join(s.Folder, databaseFile))
	if err != nil {
		return l, err
	}
	defer func() { _ = db.Close() }()
	r := &run{Proof: p, random: rand.New(rand.NewPCG(p.Input.Seed, 2)), db: db}
	if r.Fleet, err = proof.NewFleet(ctx, s, proof.Setup, &l.Tally); err != nil {
		return l, err
	}
	defer r.Close()
	return l, r.prove(ctx)
}

// prove kills the process Kills times and then lets it run to its end. The kills are spread over the first 80
// % of the effects, so that each restarted process has work left.
func (r *run) prove(ctx context.Context) error {
	r.m = r.Add()
	size, err := r.Input.WriteFile(r.m.Path(inputFile))
	if err != nil {
		return err
	}
	r.Say("%d deliveries of %d webhooks, %.0f MB", r.Input.Deliveries, r.Input.IDs, float64(size)/1e6)
	if err := r.start(ctx); err != nil {
		return err
	}
	var kills proof.Schedule
	kills.Spread(0, 0.8, r.Kills, r.killOne)
	if err := kills.Run(ctx, r.reach); err != nil {
		return err
	}
	return r.finish(ctx)
}
