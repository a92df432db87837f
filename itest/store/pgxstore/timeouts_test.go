package pgxstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// eventLog contains the events of a consumer by kind.
type eventLog struct {
	mu     sync.Mutex
	events map[semel.EventKind]int
}

// Observe implements semel.Observer.
func (o *eventLog) Observe(e semel.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events[e.Kind]++
}

func (o *eventLog) count(kind semel.EventKind) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events[kind]
}

// work runs a consumer with one worker until each message is acked or parked.
func work[Tx any](t *testing.T, st store.TxStore[Tx], handler func(context.Context, Tx, *semel.Message) error, n int, change func(*consumer.Config)) (semel.Counts, *eventLog) {
	t.Helper()
	inlet := workload.NewInlet()
	observer := &eventLog{events: map[semel.EventKind]int{}}
	c := workload.Config(inlet)
	c.Workers, c.Observers = 1, []semel.Observer{observer}
	if change != nil {
		change(&c)
	}
	running, err := consumer.New(st, handler, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range makeIDs(0, n) {
		m := workload.Message(0)
		m.Headers[0].Value, m.Body = []byte(id), []byte(id)
		inlet.Put(m)
	}
	inlet.End()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := running.Run(ctx); err != nil {
		t.Error(err)
	}
	return running.Counts(), observer
}

// slowHandler returns a handler that queues an effect; the parameter seconds is the duration of the effect on the
// server.
func (h *fixture) slowHandler(seconds string) func(context.Context, *pgxstore.Queue, *semel.Message) error {
	return func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
		q.ExecOne(h.inSchema("insert into in.effects select $1 from pg_sleep($2::float8)"), m.Body, seconds)
		return nil
	}
}

func TestQueuedStatementsHaveTheirOwnTimeOut(t *testing.T) {
	dsn := services.Postgres(t)
	t.Run("trap_T82_a_batch_of_slow_statements_takes_as_long_as_it_takes", func(t *testing.T) {
		t.Parallel()
		h := newFixture(t, openPool(t, dsn))
		counts, observer := work(t, h.Queued(), h.slowHandler("0.05"), 200, func(c *consumer.Config) {
			c.Timeout, c.CommitTimeout = 3*time.Second, 3*time.Second
		})
		if counts.Applied != 200 || observer.count(eventkind.Unknown) != 0 || observer.count(eventkind.Committed) > 3 {
			t.Errorf("%+v, told %v", counts, observer.events)
		}
	})
	t.Run("trap_T82_36_seconds_in_one_batch_with_the_default_time_outs", func(t *testing.T) {
		t.Parallel()
		h := newFixture(t, openPool(t, dsn))
		counts, observer := work(t, h.Queued(), h.slowHandler("0.12"), 300, func(c *consumer.Config) {
			c.Batch.MaxTime = time.Second
		})
		if counts.Applied != 300 || observer.count(eventkind.Unknown) != 0 {
			t.Errorf("%+v, told %v", counts, observer.events)
		}
	})
	t.Run("trap_T82_a_connection_that_falls_silent_is_given_up_long_before_all_could_have_run", func(t *testing.T) {
		t.Parallel()
		proxy := pgproxy.Start(t, dsn)
		straight := newFixture(t, openPool(t, dsn))
		h := straight.withPool(t, openPool(t, proxy.DSN()))
		ids := makeIDs(0, 400)
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: time.Second, Answer: time.Second}, h.makeMarks(t, ids...))
		for i := range ids {
			b.Tx(i).Exec(h.inSchema(insert), []byte(ids[i]))
		}
		if n := b.(admin.QueuedStatements).Queued(); n != len(ids) {
			t.Errorf("%d statements are queued, want %d", n, len(ids))
		}
		rule := proxy.HoldReply(pgproxy.Nth(100, pgproxy.Containing("effects")))
		t.Cleanup(rule.Remove)
		at := time.Now()
		r := b.Commit(t.Context(), store.Ending{})
		sqlsuite.Unknown(t, r)
		if took := time.Since(at); took > time.Minute || !strings.Contains(r.Err.Error(), "did not answer") {
			t.Errorf("it took %s and says %v; all statements together may take 400 s", took, r.Err)
		}
	})
	t.Run("trap_T82_a_connection_that_was_fast_is_given_up_as_early_and_may_be_slow", func(t *testing.T) {
		t.Parallel()
		proxy := pgproxy.Start(t, dsn)
		straight := newFixture(t, openPool(t, dsn))
		h := straight.withPool(t, openPool(t, proxy.DSN(), func(c *pgxpool.Config) { c.MaxConns = 1 }))
		batch := func(first, last int, sql string) store.Result {
			ids := makeIDs(first, last)
			b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: 2 * time.Second, Answer: time.Second}, h.makeMarks(t, ids...))
			for i := range ids {
				b.Tx(i).Exec(h.inSchema(sql), []byte(ids[i]))
			}
			return b.Commit(t.Context(), store.Ending{})
		}
		wantCommitted(t, batch(0, 500, insert))
		wantCommitted(t, batch(500, 600, "insert into in.effects select $1 from pg_sleep(0.05)")) // 100 statements that together take 5 s
		wantCommitted(t, batch(600, 1100, insert))
		rule := proxy.HoldReply(pgproxy.Nth(100, pgproxy.Containing("effects")))
		t.Cleanup(rule.Remove)
		at := time.Now()
		r := batch(1100, 1500, insert)
		sqlsuite.Unknown(t, r)
		if took := time.Since(at); took > 110*time.Second || !strings.Contains(r.Err.Error(), "did not answer") {
			t.Errorf("it took %s and says %v; 128 statements together may take 256 s", took, r.Err)
		}
	})
	t.Run("trap_T82_through_a_pooler_by_transaction_the_limit_is_the_batchs_and_stays_with_it", func(t *testing.T) {
		t.Parallel()
		_, pooled := services.Pooled(t)
		pool := openPool(t, pooled, useUnnamed)
		h := newFixture(t, pool)
		ids := makeIDs(0, 3)
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: 2 * time.Second, Answer: 20 * time.Second}, h.makeMarks(t, ids...))
		for i := range ids {
			b.Tx(i).Exec("select pg_sleep($1::float8)", []string{"0", "35", "0"}[i])
		}
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassRetry, 1)
		b, _ = sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: time.Hour}, h.makeMarks(t, ids...))
		b.Tx(0).ExecOne(h.inSchema("insert into in.effects select name::bytea from in.once where current_setting('statement_timeout') = '1h'"))
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		if n := h.number(t, "select current_setting('statement_timeout')::int"); n != 0 {
			t.Errorf("after the batch the limit is %d", n)
		}
	})
	t.Run("C17_the_one_of_twenty_that_exceeds_its_time_out_parks_and_its_neighbours_apply", func(t *testing.T) {
		t.Parallel()
		h := newFixture(t, openPool(t, dsn))
		counts, observer := work(t, h.Queued(), func(ctx context.Context, q *pgxstore.Queue, m *semel.Message) error {
			if string(m.Body) == "7" {
				return h.slowHandler("35")(ctx, q, m)
			}
			return h.slowHandler("0")(ctx, q, m)
		}, 20, func(c *consumer.Config) {
			c.Timeout, c.CommitTimeout, c.Retry.MaxAttempts = 2*time.Second, 10*time.Second, 2
		})
		if counts.Applied != 19 || counts.Parked != 1 || observer.count(eventkind.Unknown) != 0 || observer.count(semel.EventNotReady) != 0 {
			t.Errorf("%+v, told %v", counts, observer.events)
		}
		rows, err := h.Rows(t.Context(), store.RowFilter{IDs: []string{"7"}})
		if err != nil || len(rows) != 1 || rows[0].Reason != semel.ReasonExhausted || !strings.Contains(rows[0].LastError, "57014") || !strings.Contains(rows[0].LastError, "timeout") {
			t.Errorf("message 7 has the rows %+v (%v)", rows, err)
		}
	})
}
