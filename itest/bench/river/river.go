// Package river compares Semel's inbox with River, a job queue for Go on PostgreSQL, on the same server. Semel and
// River enqueue and process the same jobs. Each job inserts one row. The measured time includes enqueueing.
//
// If each job has its own transaction, River completes the job with JobCompleteTx. Effect and completion are then one
// commit, as with Semel. By default, River completes jobs in batches after the effects of the jobs. If the process
// crashes between effect and completion, the effect happens again. The package also measures River's default.
package river

import (
	"context"
	"fmt"
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

// Room registers this measurement with the command itest/cmd/proof.
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

// Run runs all implementations in turns and returns their rates.
func (p Bench) Run(ctx context.Context, s proof.Stage) *turns.Rates {
	config := proof.Must(pgxpool.ParseConfig(services.StartPostgres(s.T, services.Options{}).DSN()))
	config.MaxConns = int32(max(p.Workers, p.RiverWorkers) + 12)
	pool := proof.Must(pgxpool.NewWithConfig(ctx, config))
	defer pool.Close()
	w := newWorld(ctx, pool, p)
	r := turns.Take(ctx, s.Say, p.Rounds, "%.0f",
		w.turn(riverTx, func(ctx context.Context) { w.river(ctx, true) }),
		w.turn(semelTx, func(ctx context.Context) { w.semel(ctx, false, 1, p.Workers) }),
		w.turn(semelQueue, func(ctx context.Context) { w.semel(ctx, true, 1, p.Workers) }),
		w.turn(semelBatches, func(ctx context.Context) { w.semel(ctx, true, 500, 2) }),
		w.turn(riverBatches, func(ctx context.Context) { w.river(ctx, false) }))
	for _, name := range []string{semelTx, semelQueue, semelBatches, riverBatches} {
		r.AddRatio(name+", to River's with a transaction a job", name, riverTx, "%.2f")
	}
	r.AddServer(ctx, config.ConnString())
	return r
}

// turn processes all jobs once, on empty tables, and checks that each job took effect once.
func (w *world) turn(name string, do func(context.Context)) turns.Turn {
	return turns.Turn{Name: name, Rate: func(ctx context.Context) float64 {
		for _, statement := range []string{"truncate effects, river_job, semel_inbox, semel_markers cascade", "vacuum analyze", "checkpoint"} {
			proof.Must(w.pool.Exec(ctx, statement))
		}
		began := time.Now()
		do(ctx)
		took := time.Since(began)
		var all, different int
		proof.Check(w.pool.QueryRow(ctx, "select count(*), count(distinct job) from effects").Scan(&all, &different))
		if all != w.Jobs || different != w.Jobs {
			proof.Check(fmt.Errorf("%d effects of %d jobs, want %d", all, different, w.Jobs))
		}
		return float64(w.Jobs) / took.Seconds()
	}}
}
