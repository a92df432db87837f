package pgxstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// pass waits for the duration d, like a callback that works for this time.
func pass(t testing.TB, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

func TestTheTimeOfACallbackIsNotTheServers(t *testing.T) {
	t.Run("a_server_that_answered_is_not_silent_while_callbacks_run", func(t *testing.T) {
		t.Parallel()
		h := newFixture(t, openPool(t, services.Postgres(t)))
		o := store.TxOptions{Statement: 4 * time.Second, Answer: 2 * time.Second}
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), o, h.makeMarks(t, "1", "2", "3"))
		for i := range 3 {
			// The last answer is larger than the client's read buffer, so the server waits until the
			// client reads.
			b.Tx(i).Query("select repeat('x', $1) from pg_sleep(3.2)", []int{1, 1, 1_000_000}[i]).Do(func(rows pgx.Rows) error {
				_, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
				pass(t, 3200*time.Millisecond)
				return err
			})
		}
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
	})
	t.Run("one_that_falls_silent_within_a_callbacks_rows_is_noticed", func(t *testing.T) {
		t.Parallel()
		proxy := pgproxy.Start(t, services.Postgres(t))
		h := newFixture(t, openPool(t, proxy.DSN()))
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{Statement: 500 * time.Millisecond, Answer: 5 * time.Second}, h.makeMarks(t, "1"))
		b.Tx(0).Query("select n from generate_series(1, 3) n").Do(func(rows pgx.Rows) error {
			_, err := pgx.CollectRows(rows, pgx.RowTo[int])
			return err
		})
		held := proxy.HoldReply(pgproxy.Containing("generate_series"))
		t.Cleanup(held.Remove)
		r := b.Commit(t.Context(), store.Ending{})
		wantRefused(t, r, store.ClassRetry, 0) // the message's timeout ends before the statement
	})
}
