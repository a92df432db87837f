package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sourcetest"
)

// The maximum number of messages in a transaction, which is also Semel's default.
const batchMost = 500

// mostOf returns the maximum number of messages in a transaction of Semel. With lanes by key, a worker
// changes each of its few counters many times in one transaction. PostgreSQL then has to read all versions of
// the row that the transaction has created. Batches of thirty are therefore more than three times as fast as
// batches of five hundred.
func mostOf(c Conditions, lanes consumer.LaneMode) int {
	if lanes == consumer.LanesKey && c.Effect == Counters && c.Workers > 1 {
		return 28
	}
	return batchMost
}

// contention counts the lock conflicts of a consumer, and measures how long its batches ran one at a time.
type contention struct {
	mutex  sync.Mutex
	met    int           // number of conflicts; guarded by mutex
	began  time.Time     // when batches began to run one at a time, zero if they run concurrently; guarded by mutex
	serial time.Duration // total time in which batches ran one at a time; guarded by mutex
}

func (o *contention) Observe(e semel.Event) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch e.Kind {
	case eventkind.Contended:
		o.met++
	case eventkind.Serial:
		o.began = time.Now()
	case eventkind.Parallel:
		o.stop()
	}
}

func (o *contention) stop() {
	if !o.began.IsZero() {
		o.serial += time.Since(o.began)
		o.began = time.Time{}
	}
}

// outcome is the result of a run.
type outcome struct {
	applied   int // includes duplicates
	deadlocks int
	serial    time.Duration
}

func (o *contention) outcome() outcome {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.stop()
	return outcome{deadlocks: o.met, serial: o.serial}
}

// applySemel applies the messages with Semel. A batch ends at 500 messages and not after a time, as with the
// hand-written batches.
func (d *database) applySemel(ctx context.Context, c Conditions, messages []*semel.Message, lanes consumer.LaneMode) (outcome, error) {
	source := sourcetest.NewMemory(1)
	for _, m := range messages {
		if err := source.Publish(0, m); err != nil {
			return outcome{}, err
		}
	}
	if err := source.End(); err != nil {
		return outcome{}, err
	}
	observer := &contention{}
	run, err := d.consumer(c, consumer.Config{
		Name: "bench", Source: source, Identity: identity.By("header:id"), Lanes: lanes, Workers: c.Workers,
		Batch:  consumer.BatchLimits{MaxSize: mostOf(c, lanes), MaxTime: time.Minute},
		Logger: slog.New(slog.DiscardHandler), Observers: []semel.Observer{observer},
	})
	if err != nil {
		return outcome{}, err
	}
	counts, err := run(ctx)
	out := observer.outcome()
	out.applied = int(counts.Applied + counts.Duplicates)
	if err == nil && out.applied != len(messages) {
		err = fmt.Errorf("%d of %d messages ended: %+v", out.applied, len(messages), counts)
	}
	return out, err
}

// seeded is a plan with a fixed seed, so that the random delays are the same in each run.
var seeded = faults.Plan{Seed: 1}

// consumer returns a function that runs a consumer whose handler has the form c.Form.
func (d *database) consumer(c Conditions, config consumer.Config) (func(context.Context) (semel.Counts, error), error) {
	switch c.Form {
	case Handle:
		return newRun(consumer.New(d.pgx, handleOne(c.Effect.singleStatement()), config, seeded))
	case Queue:
		return newRun(consumer.New(d.pgx.Queued(), queueOne(c.Effect.singleStatement()), config, seeded))
	case HandleAll:
		return newRun(consumer.NewBatch(d.pgx, handleAll(c.Effect.batchStatement()), config, seeded))
	case HandleSQL:
		return newRun(consumer.New(d.sql, handleSQL(c.Effect.singleStatement()), config, seeded))
	}
	return nil, errors.New("no such form: " + string(c.Form))
}

func newRun[Tx any](consumer *consumer.Consumer[Tx], err error) (func(context.Context) (semel.Counts, error), error) {
	return func(ctx context.Context) (semel.Counts, error) {
		err := consumer.Run(ctx)
		return consumer.Counts(), err
	}, err
}

func handleOne(effect string) func(context.Context, pgx.Tx, *semel.Message) error {
	return func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		p, err := semel.JSON[payment](m)
		if err == nil {
			_, err = tx.Exec(ctx, effect, p.Account, p.Amount)
		}
		return err
	}
}

func queueOne(effect string) func(context.Context, *pgxstore.Queue, *semel.Message) error {
	return func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
		p, err := semel.JSON[payment](m)
		if err == nil {
			q.Exec(effect, p.Account, p.Amount)
		}
		return err
	}
}

func handleAll(effect string) func(context.Context, pgx.Tx, []*semel.Message) error {
	return func(ctx context.Context, tx pgx.Tx, all []*semel.Message) error {
		accounts, amounts, err := statementArgs(all)
		if err == nil {
			_, err = tx.Exec(ctx, effect, accounts, amounts)
		}
		return err
	}
}

func handleSQL(effect string) func(context.Context, *sql.Tx, *semel.Message) error {
	return func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		p, err := semel.JSON[payment](m)
		if err == nil {
			_, err = tx.ExecContext(ctx, effect, p.Account, p.Amount)
		}
		return err
	}
}
