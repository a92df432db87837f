package river

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/semel-go/semel/pgxstore"
)

// job is the job that both systems process.
type job struct {
	Number int `json:"number"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "effect" }

// effect is the statement that each job runs.
const effect = "insert into effects (job) values ($1)"

// world is a database with the tables of both systems.
type world struct {
	Bench
	pool  *pgxpool.Pool
	store *pgxstore.Store
}

func newWorld(ctx context.Context, pool *pgxpool.Pool, p Bench) (*world, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, "create table effects (job bigint not null)")
	return &world{p, pool, store}, err
}

// clear empties the tables and makes the server write a checkpoint.
func (w *world) clear(ctx context.Context) error {
	for _, statement := range []string{"truncate effects, river_job, semel_inbox, semel_markers cascade", "vacuum analyze", "checkpoint"} {
		if _, err := w.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// complete checks that each job took effect once.
func (w *world) complete(ctx context.Context) error {
	var all, different int
	if err := w.pool.QueryRow(ctx, "select count(*), count(distinct job) from effects").Scan(&all, &different); err != nil {
		return err
	}
	if all != w.Jobs || different != w.Jobs {
		return fmt.Errorf("%d effects of %d jobs, want %d", all, different, w.Jobs)
	}
	return nil
}

// inTx calls a function in a transaction.
func (w *world) inTx(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, w.pool, do)
}

// worker is River's handler. It runs the effect of a job.
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

// river enqueues and processes all jobs with River, with settings for the highest speed. tx selects
// JobCompleteTx.
func (w *world) river(ctx context.Context, tx bool) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{w: w, tx: tx})
	client, err := river.NewClient(riverpgxv5.New(w.pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: w.RiverWorkers}}, Workers: workers,
		FetchCooldown: river.FetchCooldownMin, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	done, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed}, ChanSize: 2 * w.Jobs})
	defer unsubscribe()
	if err := client.Start(ctx); err != nil {
		return err
	}
	for at := 0; at < w.Jobs; at += w.Insert {
		var some []river.InsertManyParams
		for n := at; n < min(at+w.Insert, w.Jobs); n++ {
			some = append(some, river.InsertManyParams{Args: job{n}})
		}
		if err := w.inTx(ctx, func(tx pgx.Tx) error { _, err := client.InsertManyFastTx(ctx, tx, some); return err }); err != nil {
			return err
		}
	}
	for range w.Jobs {
		select {
		case e := <-done:
			if e.Kind != river.EventKindJobCompleted {
				return fmt.Errorf("job %d: %s", e.Job.ID, e.Kind)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return client.Stop(ctx)
}

// semel enqueues the jobs with Accept and processes them with Work. most is the maximum number of jobs in a
// transaction. With queued, the statements are sent together with the commit.
func (w *world) semel(ctx context.Context, queued bool, most, workers int) error {
	config := consumer.Config{Name: "effects", Identity: identity.By("header:id"), Fingerprint: identity.FingerprintNone(), Strategy: consumer.StrategyInbox,
		Workers: workers, Batch: consumer.BatchLimits{MaxSize: most}, Logger: slog.New(slog.DiscardHandler)}
	direct, err := consumer.New(w.store, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		j, err := semel.JSON[job](m)
		if err == nil {
			_, err = tx.Exec(ctx, effect, j.Number)
		}
		return err
	}, config)
	if err != nil {
		return err
	}
	if err := w.accept(ctx, direct); err != nil || !queued {
		return errors.Join(err, direct.Work(ctx))
	}
	c, err := consumer.New(w.store.Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
		j, err := semel.JSON[job](m)
		if err == nil {
			q.Exec(effect, j.Number)
		}
		return err
	}, config)
	if err != nil {
		return err
	}
	return c.Work(ctx)
}

// accept enqueues all jobs, several in each transaction.
func (w *world) accept(ctx context.Context, c *consumer.Consumer[pgx.Tx]) error {
	for at := 0; at < w.Jobs; at += w.Insert {
		var some []*semel.Message
		for n := at; n < min(at+w.Insert, w.Jobs); n++ {
			body, err := json.Marshal(job{n})
			if err != nil {
				return err
			}
			some = append(some, &semel.Message{Headers: semel.Headers{{Name: "id", Value: fmt.Appendf(nil, "job-%d", n)}}, Body: body})
		}
		if err := w.inTx(ctx, func(tx pgx.Tx) error { _, err := c.Accept(ctx, tx, some...); return err }); err != nil {
			return err
		}
	}
	return nil
}
