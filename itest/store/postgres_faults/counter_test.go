package postgresfaults

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// countOne changes the row of counters that everybody changes.
const countOne = `update counters set n = n + 1`

// counted is a migrated database with that row, at 0.
func counted(t testing.TB) (dsn string) {
	t.Helper()
	return migrated(t, services.Postgres(t), `create table counters (n int)`, `insert into counters values (0)`)
}

// wantCounter checks how often it was changed.
func (w *world) wantCounter(n int) {
	w.t.Helper()
	if got := one[int](w.t, w.db, `select n from counters`); got != n {
		w.t.Errorf("the counter is %d, want %d", got, n)
	}
}

// countImpatiently is a handler's, which waits for the row for 50 ms.
func countImpatiently(ctx context.Context, exec workload.Exec) error {
	if err := exec(ctx, `set local lock_timeout = '50ms'`); err != nil {
		return err
	}
	return exec(ctx, countOne)
}

// lockCounter is a stranger who has changed the row and has not ended.
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
