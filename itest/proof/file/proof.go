//go:build unix

// Package file is a fault test with real input: it checks that the messages of a file take effect once, although the
// process that applies them is killed again and again. The test runs the binary, kills the process with SIGKILL while
// it works, and computes the ledger from the database.
package file

import (
	"context"
	"math/rand/v2"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run with SQLite.
type Proof struct {
	Input Input
	// Batch is the maximum number of messages in a transaction.
	Batch int
	// Kills is the number of kills of the process. Open is the number of kills that must happen during an open
	// transaction. Every fifth kill comes at a random moment. Before each of the other kills, the test freezes the
	// process in an open transaction.
	Kills, Open int
}

const databaseFile = "counts.db"

// Run writes the input, runs semel until it ends by itself, and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Deliveries: p.Input.Deliveries, Absorbed: p.Input.Deliveries - p.Input.IDs, least: p.Open}
	db := proof.Must(processes.OpenSQLite(ctx, s.Path(databaseFile)))
	defer func() { _ = db.Close() }()
	r := &run{Proof: p, Fleet: proof.NewFleet(ctx, s, proof.Setup, &l.Tally), random: rand.New(rand.NewPCG(p.Input.Seed, 2)), db: db}
	defer r.Close()
	r.m = r.Add()
	size := proof.Must(r.Input.WriteFile(r.Path(inputFile)))
	r.Say("%d deliveries of %d webhooks, %.0f MB", r.Input.Deliveries, r.Input.IDs, float64(size)/1e6)
	r.start(ctx)
	// Kills are distributed over the first 80 % of the effects, so that work is left at each kill.
	var kills proof.Schedule
	kills.Spread(0, 0.8, r.Kills, r.killOne)
	kills.Run(ctx, r.reach)
	left := r.m.Finish(proof.Consumer)
	r.Over()
	l.Audit(ctx, r.db.Conn, r.Input.sentIDs(), proof.Must(r.m.Parked())+left, true)
	return l
}
