//go:build unix

// Package file proves on real input that a file's messages take effect once
// although the process that applies them is killed again and again: it runs the
// binary, kills it with SIGKILL while it works, and reads the ledger from the
// database.
package file

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Proof is one run with SQLite.
type Proof struct {
	Input Input
	// Batch is the most messages of a transaction.
	Batch int
	// Kills is how often the process is killed before it may end, Open how many
	// of them must meet an open transaction. Every fifth kill is blind; for the
	// others the process is frozen until it has one open.
	Kills, Open int
}

const databaseFile = "counts.db"

// Run writes the input, runs semel until it ends by itself and returns the
// ledger. An error says that the run itself failed; judge the ledger with Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{Deliveries: p.Input.Deliveries, Absorbed: p.Input.Deliveries - p.Input.IDs, least: p.Open}
	db, err := processes.OpenSQLite(ctx, filepath.Join(s.Folder, databaseFile))
	if err != nil {
		return l, err
	}
	defer func() { _ = db.Close() }()
	r := &run{input: p.Input, store: "sqlite: {path: " + databaseFile + "}", batch: p.Batch, timeout: 30 * time.Second,
		random: rand.New(rand.NewPCG(p.Input.Seed, 2)), db: db, reader: db.Conn}
	if r.Fleet, err = proof.NewFleet(ctx, s, proof.Setup, &l.Tally); err != nil {
		return l, err
	}
	defer r.Close()
	err = p.prove(ctx, r)
	return l, err
}

// prove kills the process as often as it is to be, and runs it to its end.
func (p Proof) prove(ctx context.Context, r *run) error {
	m := r.Add()
	size, err := r.write(m, os.O_TRUNC, p.Input.order())
	if err != nil {
		return err
	}
	r.Say("%d deliveries of %d webhooks, %.0f MB", p.Input.Deliveries, p.Input.IDs, float64(size)/1e6)
	first := 0 // how many effects stood when the process started
	start := func() (err error) {
		// While it is hunted the process follows its file, so that it cannot end
		// before it is killed, however slow the hunter is.
		if err := r.start(m, r.Tally.Kills < p.Kills); err != nil {
			return err
		}
		first, err = r.db.Effects(ctx)
		return err
	}
	if err := start(); err != nil {
		return err
	}
	// Kills are spread over the first 80 % of the effects, so that there is work
	// left at each.
	var kills proof.Schedule
	kills.Spread(0, 0.8, p.Kills, func(ctx context.Context) error {
		if err := r.kill(ctx, m, r.Tally.Kills%5 == 4); err != nil {
			return err
		}
		return start()
	})
	err = kills.Run(ctx, func(ctx context.Context, share float64) error {
		if err := r.reach(ctx, share); err != nil {
			return err
		}
		// What a process writes before, as it recovers what the last one left, is
		// not taken for its work.
		return r.untilEffects(ctx, first+1)
	})
	if err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	return r.audit(ctx)
}
