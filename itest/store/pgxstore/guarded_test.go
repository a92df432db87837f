package pgxstore

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func TestCallbacksAreRunAsHandlersAre(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	for name, c := range map[string]struct {
		read func(*pgxstore.Queue, pgx.Rows) error
		says string
	}{
		"panics":             {func(*pgxstore.Queue, pgx.Rows) error { panic("x") }, "panicked: x\ngoroutine"},
		"panics_with_nil":    {func(*pgxstore.Queue, pgx.Rows) error { panic(nil) }, "panicked"},
		"ends_its_goroutine": {func(*pgxstore.Queue, pgx.Rows) error { runtime.Goexit(); return nil }, "Goexit"},
		"is_late":            {func(*pgxstore.Queue, pgx.Rows) error { <-time.After(1500 * time.Millisecond); return nil }, "longer than"},
		"queues_itself":      {requeue, "100 rounds"},
		"returns_a_nil":      {func(*pgxstore.Queue, pgx.Rows) error { return (*pgconn.PgError)(nil) }, "nil of type"},
	} {
		t.Run("trap_T90_a_callback_is_its_messages_failure/"+name, func(t *testing.T) {
			h := newFixture(t, pool)
			b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: time.Second}, h.makeMarks(t, "a", "b"))
			q := b.Tx(1)
			q.Query("select 1").Do(func(rows pgx.Rows) error { return c.read(q, rows) })
			r := b.Commit(t.Context(), store.Ending{})
			if r.Outcome != store.NotCommitted || r.Culprit != 1 || r.Err == nil || !strings.Contains(r.Err.Error(), c.says) {
				t.Errorf("the commit says %+v", r)
			}
			h.wantNothing(t, "a", "b")
		})
	}
}

// requeue is a callback that queues itself endlessly.
func requeue(q *pgxstore.Queue, _ pgx.Rows) error {
	q.Query("select 1").Do(func(rows pgx.Rows) error { return requeue(q, rows) })
	return nil
}
