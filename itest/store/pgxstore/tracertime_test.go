package pgxstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// callbackTracer is a tracer that calls a function for each query and each prepared statement.
type callbackTracer struct {
	do func(call string) // may be nil; set only while no batch is open
}

func (d *callbackTracer) is(call string) {
	if d.do != nil {
		d.do(call)
	}
}

func (d *callbackTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	d.is("query start")
	return ctx
}

func (d *callbackTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	d.is("query end")
}

func (d *callbackTracer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	d.is("prepare start")
	return ctx
}

func (d *callbackTracer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {
	d.is("prepare end")
}

// doingBatches is a tracer that also traces batches.
type doingBatches struct{ callbackTracer }

func (d *doingBatches) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	d.is("batch start")
	return ctx
}

func (d *doingBatches) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	d.is("batch query")
}

func (d *doingBatches) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	d.is("batch end")
}

// tracerCase is a kind of tracer, with the names of the methods that pgx calls.
type tracerCase struct {
	name  string
	calls []string
	make  func() (pgx.QueryTracer, *callbackTracer)
}

func tracerCases() []tracerCase {
	return []tracerCase{
		{"queries", []string{"prepare start", "prepare end", "query start", "query end"}, func() (pgx.QueryTracer, *callbackTracer) {
			d := &callbackTracer{}
			return d, d
		}},
		{"batches", []string{"prepare start", "prepare end", "batch start", "batch query", "batch end"}, func() (pgx.QueryTracer, *callbackTracer) {
			d := &doingBatches{}
			return d, &d.callbackTracer
		}},
	}
}

func TestTheTimeOfATracerIsNotTheServers(t *testing.T) {
	for _, k := range tracerCases() {
		t.Run(k.name, func(t *testing.T) {
			t.Run("a_server_that_answered_is_not_silent_while_a_tracer_works", func(t *testing.T) {
				t.Parallel()
				use, d := k.make()
				h := newFixture(t, openPool(t, services.Postgres(t), tracer(use)))
				b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: time.Second, Answer: time.Second}, h.makeMarks(t, "1"))
				b.Tx(0).ExecOne(h.inSchema(insert), []byte("1"))
				d.do = func(string) { pass(t, 2200*time.Millisecond) }
				wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
			})
			t.Run("one_that_falls_silent_behind_a_tracers_back_is_noticed", func(t *testing.T) {
				t.Parallel()
				proxy := pgproxy.Start(t, services.Postgres(t))
				use, _ := k.make()
				h := newFixture(t, openPool(t, proxy.DSN(), tracer(use)))
				b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: time.Second, Answer: time.Second}, h.makeMarks(t, "1"))
				held := proxy.HoldReply(pgproxy.Commit)
				t.Cleanup(held.Remove)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				r := b.Commit(ctx, store.Ending{})
				if r.Outcome != store.CommitUnknown || !strings.Contains(r.Err.Error(), "did not answer") {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

func TestATracerThatPanicsHarmsNoBatch(t *testing.T) {
	for _, k := range tracerCases() {
		t.Run(k.name, func(t *testing.T) {
			use, d := k.make()
			h := newFixture(t, openPool(t, services.Postgres(t), tracer(use)))
			for _, call := range k.calls {
				t.Run("at_"+strings.ReplaceAll(call, " ", "_")+"_and_is_left_alone_until_the_next", func(t *testing.T) {
					calls := 0
					h.makeMarks(t, call) // pgx also traces the store's own statements
					d.do = func(c string) {
						if c == call {
							calls++
							panic("the tracer's fault")
						}
					}
					defer func() { d.do = nil }()
					for i, id := range []string{call + " 1", call + " 2"} {
						b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, id))
						b.Tx(0).Exec(h.inSchema("/* "+id+" */ "+insert), []byte(id))
						wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
						if calls != i+1 {
							t.Errorf("called %d times in %d batches", calls, i+1)
						}
					}
					d.do = nil
					h.wantApplied(t, call+" 1", call+" 2")
				})
			}
			for _, call := range []string{"query start", "query end"} {
				t.Run("at_a_rollbacks_"+strings.ReplaceAll(call, " ", "_"), func(t *testing.T) {
					id := "rollback at " + call
					b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, id))
					d.do = func(c string) {
						if c == call {
							panic("the tracer's fault")
						}
					}
					b.Rollback(t.Context())
					d.do = nil
					wantCommitted(t, deliverQueued(t, h, []string{id}))
				})
			}
		})
	}
}
