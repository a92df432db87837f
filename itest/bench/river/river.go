// Package river compares Semel's inbox with River, a job queue for Go on PostgreSQL, on the same server. Both
// enqueue the same jobs and process them. Each job inserts one row. The measured time includes enqueueing.
//
// If each job has its own transaction, River completes the job with JobCompleteTx. Effect and completion are
// then one commit, as with Semel. By default River completes jobs in batches after their effects. If the
// process crashes between effect and completion, the effect happens again. The package measures this mode
// too.
package river

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/itest/bench/turns"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// Bench is the configuration of a run.
type Bench struct {
	Rounds       int `flag:"number of rounds"`
	Jobs         int `flag:"jobs in a run"`
	Workers      int `flag:"Semel's workers if each job has its own transaction; on two cores the default is the fastest"`
	RiverWorkers int `flag:"River's workers; on two cores the default is the fastest"`
	Insert       int `flag:"jobs enqueued in one transaction, for River and Semel"`
}

// Room returns the entry of this measurement for the proof command.
func Room() proof.Room {
	return &proof.Form[Bench, *turns.Rates]{Title: "river", Within: time.Hour, Sizes: Bench{Rounds: 11, Jobs: 5000, Workers: 16, RiverWorkers: 24, Insert: 500}, Prove: Bench.Run}
}

const (
	riverTx      = "River, JobCompleteTx, a transaction a job"
	semelTx      = "Semel, a transaction a job"
	semelQueue   = "Semel, a transaction a job, its statements queued"
	semelBatches = "Semel, in batches of 500, their statements queued"
	riverBatches = "River, completed in batches, apart from the effect"
)

// Run runs all contestants in turns and returns their rates.
func (p Bench) Run(ctx context.Context, s proof.Stage) (*turns.Rates, error) {
	config, err := pgxpool.ParseConfig(services.StartPostgres(s.T, services.Options{}).DSN())
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(max(p.Workers, p.RiverWorkers) + 12)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	w, err := newWorld(ctx, pool, p)
	if err != nil {
		return nil, err
	}
	r, err := turns.Take(ctx, s.Say, p.Rounds, "%.0f",
		w.turn(riverTx, func(ctx context.Context) error { return w.river(ctx, true) }),
		w.turn(semelTx, func(ctx context.Context) error { return w.semel(ctx, false, 1, p.Workers) }),
		w.turn(semelQueue, func(ctx context.Context) error { return w.semel(ctx, true, 1, p.Workers) }),
		w.turn(semelBatches, func(ctx context.Context) error { return w.semel(ctx, true, 500, 2) }),
		w.turn(riverBatches, func(ctx context.Context) error { return w.river(ctx, false) }))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{semelTx, semelQueue, semelBatches, riverBatches} {
		r.AddRatio(name+", to River's with a transaction a job", name, riverTx, "%.2f")
	}
	return r, r.AddServer(ctx, config.ConnString())
}

// turn returns a contestant that starts with empty tables and processes all jobs once.
func (w *world) turn(name string, do func(context.Context) error) turns.Turn {
	return turns.Turn{Name: name, Rate: func(ctx context.Context) (float64, error) {
		if err := w.clear(ctx); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := do(ctx); err != nil {
			return 0, err
		}
		took := time.Since(began)
		return float64(w.Jobs) / took.Seconds(), w.complete(ctx)
	}}
}
