package postgresfaults

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// A statement that updates the row of counters, which every handler updates.
const countOne = `update counters set n = n + 1`

// newCounterDatabase returns a migrated database in which the counter is 0.
func newCounterDatabase(t testing.TB) (dsn string) {
	t.Helper()
	return migrateDatabase(t, services.Postgres(t), `create table counters (n int)`, `insert into counters values (0)`)
}

// wantCounter checks that the counter was increased n times.
func (w *world) wantCounter(n int) {
	w.t.Helper()
	if got := queryOne[int](w.t, w.db, `select n from counters`); got != n {
		w.t.Errorf("the counter is %d, want %d", got, n)
	}
}

// countImpatiently increases the counter in a handler, and waits at most 50 ms for the lock of the counter.
func countImpatiently(ctx context.Context, exec workload.Exec) error {
	if err := exec(ctx, `set local lock_timeout = '50ms'`); err != nil {
		return err
	}
	return exec(ctx, countOne)
}

// lockCounter opens another transaction that has increased the counter, and so has locked the counter's row.
func (w *world) lockCounter() (stranger *sql.Tx) {
	w.t.Helper()
	stranger, err := w.db.BeginTx(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = stranger.Rollback() })
	if _, err := stranger.Exec(countOne); err != nil {
		w.t.Fatal(err)
	}
	return stranger
}
