package river

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/pgxstore"
)

// job is the job that both systems process.
type job struct {
	Number int `json:"number"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "effect" }

// The statement that each job runs.
const effect = "insert into effects (job) values ($1)"

// world is a database with the tables of Semel and River.
type world struct {
	Bench
	pool  *pgxpool.Pool
	store *pgxstore.Store
}

func newWorld(ctx context.Context, pool *pgxpool.Pool, p Bench) *world {
	proof.Must(proof.Must(rivermigrate.New(riverpgxv5.New(pool), nil)).Migrate(ctx, rivermigrate.DirectionUp, nil))
	store := proof.Must(pgxstore.New(pool, pgxstore.Options{}))
	proof.Must(store.Migrate(ctx))
	proof.Must(pool.Exec(ctx, "create table effects (job bigint not null)"))
	return &world{p, pool, store}
}

// inTx calls a function in a transaction.
func (w *world) inTx(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, w.pool, do)
}

// worker is a handler for River that runs the effect of a job.
type worker struct {
	river.WorkerDefaults[job]
	w  *world
	tx bool
}

// Work implements river.Worker.
func (k *worker) Work(ctx context.Context, j *river.Job[job]) error {
	if !k.tx {
		_, err := k.w.pool.Exec(ctx, effect, j.Args.Number)
		return err
	}
	return k.w.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, effect, j.Args.Number); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j)
		return err
	})
}

// river enqueues and processes all jobs with River, with settings for the highest speed. The parameter tx selects
// JobCompleteTx.
func (w *world) river(ctx context.Context, tx bool) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{w: w, tx: tx})
	client := proof.Must(river.NewClient(riverpgxv5.New(w.pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: w.RiverWorkers}}, Workers: workers,
		FetchCooldown: river.FetchCooldownMin, Logger: slog.New(slog.DiscardHandler),
	}))
	done, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed}, ChanSize: 2 * w.Jobs})
	defer unsubscribe()
	proof.Check(client.Start(ctx))
	for at := 0; at < w.Jobs; at += w.Insert {
		var some []river.InsertManyParams
		for n := at; n < min(at+w.Insert, w.Jobs); n++ {
			some = append(some, river.InsertManyParams{Args: job{n}})
		}
		proof.Check(w.inTx(ctx, func(tx pgx.Tx) error { _, err := client.InsertManyFastTx(ctx, tx, some); return err }))
	}
	for range w.Jobs {
		select {
		case e := <-done:
			if e.Kind != river.EventKindJobCompleted {
				proof.Check(fmt.Errorf("job %d: %s", e.Job.ID, e.Kind))
			}
		case <-ctx.Done():
			proof.Check(ctx.Err())
		}
	}
	proof.Check(client.Stop(ctx))
}

// semel enqueues the jobs with Accept and processes them with Work. The parameter most is the maximum number of jobs in
// a transaction. If queued is true, the statements are sent together with the commit.
func (w *world) semel(ctx context.Context, queued bool, most, workers int) {
	config := consumer.Config{Name: "effects", Identity: identity.By("header:id"), Fingerprint: identity.FingerprintNone(), Strategy: consumer.StrategyInbox,
		Workers: workers, Batch: consumer.BatchLimits{MaxSize: most}, Logger: slog.New(slog.DiscardHandler)}
	direct := proof.Must(consumer.New(w.store, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		j, err := semel.JSON[job](m)
		if err == nil {
			_, err = tx.Exec(ctx, effect, j.Number)
		}
		return err
	}, config))
	if w.accept(ctx, direct); !queued {
		proof.Check(direct.Work(ctx))
		return
	}
	c := proof.Must(consumer.New(w.store.Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
		j, err := semel.JSON[job](m)
		if err == nil {
			q.Exec(effect, j.Number)
		}
		return err
	}, config))
	proof.Check(c.Work(ctx))
}

// accept enqueues all jobs, several in each transaction.
func (w *world) accept(ctx context.Context, c *consumer.Consumer[pgx.Tx]) {
	for at := 0; at < w.Jobs; at += w.Insert {
		var some []*semel.Message
		for n := at; n < min(at+w.Insert, w.Jobs); n++ {
			body := proof.Must(json.Marshal(job{n}))
			some = append(some, &semel.Message{Headers: semel.Headers{{Name: "id", Value: fmt.Appendf(nil, "job-%d", n)}}, Body: body})
		}
		proof.Check(w.inTx(ctx, func(tx pgx.Tx) error { _, err := c.Accept(ctx, tx, some...); return err }))
	}
}
