package pgxstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
)

// queries is a tracer that traces queries and prepared statements.
type queries struct {
	mutex    sync.Mutex
	ended    []string // guarded by mutex: the first words of each ended statement, with the command tag or the error
	prepared []string // guarded by mutex: the texts of prepared statements
	open     int      // guarded by mutex
	strays   int      // guarded by mutex: number of ends that were traced without the context of their beginning
}

type sent struct{}

func (q *queries) note(list *[]string, open int, text string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.open += open
	if text != "" {
		*list = append(*list, text)
	}
}

// asTold returns the first words of a statement, followed by the command tag or the error of the statement.
func asTold(sql string, tag fmt.Stringer, err error) string {
	words := strings.Fields(sql)
	text := strings.Join(words[:min(2, len(words))], " ")
	if err != nil {
		return text + ": error"
	}
	return text + ": " + tag.String()
}

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	q.note(nil, 1, "")
	return context.WithValue(ctx, sent{}, data.SQL)
}

func (q *queries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	sql, _ := ctx.Value(sent{}).(string)
	if sql == "" {
		q.mutex.Lock()
		q.strays++
		q.mutex.Unlock()
	}
	q.note(&q.ended, -1, asTold(sql, data.CommandTag, data.Err))
}

func (q *queries) TracePrepareStart(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareStartData) context.Context {
	q.note(nil, 1, "")
	return context.WithValue(ctx, sent{}, data.SQL)
}

func (q *queries) TracePrepareEnd(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareEndData) {
	sql, _ := ctx.Value(sent{}).(string)
	if data.Err != nil {
		sql += ": error"
	}
	q.note(&q.prepared, -1, sql)
}

// batches is a tracer that also traces batches.
type batches struct {
	queries
	sizes []int // guarded by mutex: number of statements in each batch
	seen  []string
}

func (b *batches) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	b.note(nil, 1, "")
	b.sizes = append(b.sizes, data.Batch.Len())
	return context.WithValue(ctx, sent{}, "batch")
}

func (b *batches) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if ctx.Value(sent{}) != "batch" || data.ReadStartTime.IsZero() {
		b.strays++
	}
	b.note(&b.seen, 0, asTold(data.SQL, data.CommandTag, data.Err))
}

func (b *batches) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	if data.Err != nil {
		b.note(&b.seen, -1, "batch: error")
		return
	}
	b.note(&b.seen, -1, "batch: done")
}

func (q *queries) forget() { q.ended, q.prepared = nil, nil }

// useTracer configures a pool with a tracer.
func useTracer(t pgx.QueryTracer) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.Tracer = t }
}

func tracer(t pgx.QueryTracer) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.Tracer, c.MaxConns = t, 1 }
}

func want(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestTracersSeeWhatIsSent(t *testing.T) {
	t.Run("queries", func(t *testing.T) {
		var seen queries
		h := newFixture(t, openPool(t, services.Postgres(t), tracer(&seen)))
		// the first delivery registers the consumer's source and prepares the statements
		wantCommitted(t, deliverQueued(t, h, []string{"0"}))
		seen.forget()
		t.Run("marks_and_queued_statements_once_each", func(t *testing.T) {
			wantCommitted(t, deliverQueued(t, h, []string{"1", "2"}))
			want(t, "queries", seen.ended, []string{"begin isolation: BEGIN", "with settings: SELECT 2",
				"with changed: SELECT 1", "with changed: SELECT 1", "with ended: SELECT 1", "commit: COMMIT"})
			want(t, "prepared", seen.prepared, nil)
		})
		t.Run("a_handlers_own_once", func(t *testing.T) {
			wantCommitted(t, deliverDirect(t, h, []string{"3"}))
			seen.forget()
			wantCommitted(t, deliverDirect(t, h, []string{"4"}))
			want(t, "queries", seen.ended, []string{"begin isolation: BEGIN", "with settings: SELECT 1",
				"insert into: INSERT 0 1", "with ended: SELECT 1", "commit: COMMIT"})
		})
		t.Run("what_did_not_run_ends_with_the_error", func(t *testing.T) {
			b, _ := sqlsuite.Begin(t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "5"))
			b.Tx(0).Exec("select 1 / 0")
			b.Tx(0).Exec("select 1")
			seen.forget()
			wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassPermanent, 0)
			want(t, "queries", seen.ended, []string{"select 1: error", "select 1: error", "with ended: error", "commit: error", "rollback: ROLLBACK"})
			want(t, "prepared", seen.prepared, []string{"select 1 / 0", "select 1"})
		})
		if seen.open != 0 || seen.strays != 0 {
			t.Errorf("%d have not ended, %d ended without their context", seen.open, seen.strays)
		}
	})
	t.Run("batches", func(t *testing.T) {
		var seen batches
		h := newFixture(t, openPool(t, services.Postgres(t), tracer(&seen)))
		wantCommitted(t, deliverQueued(t, h, []string{"0"}))
		seen.forget()
		seen.seen, seen.sizes = nil, nil
		t.Run("marks_and_queued_statements_once_each", func(t *testing.T) {
			wantCommitted(t, deliverQueued(t, h, []string{"1", "2"}))
			want(t, "batches", seen.seen, []string{"begin isolation: BEGIN", "with settings: SELECT 2", "batch: done",
				"with changed: SELECT 1", "with changed: SELECT 1", "with ended: SELECT 1", "commit: COMMIT", "batch: done"})
			want(t, "queries", seen.ended, nil)
			if !slices.Equal(seen.sizes, []int{2, 4}) {
				t.Errorf("batches of %d", seen.sizes)
			}
		})
		t.Run("one_that_fails_with_its_error", func(t *testing.T) {
			b, _ := sqlsuite.Begin(t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "5"))
			b.Tx(0).Exec("select 1 / 0")
			b.Tx(0).Exec("seleckt 1")
			seen.forget()
			seen.seen = nil
			wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassPermanent, 0)
			want(t, "batches", seen.seen, nil)
			want(t, "prepared", seen.prepared, []string{"select 1 / 0", "seleckt 1: error"})
		})
		if seen.open != 0 || seen.strays != 0 {
			t.Errorf("%d have not ended, %d ended without their context", seen.open, seen.strays)
		}
	})
}
