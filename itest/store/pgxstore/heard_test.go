package pgxstore

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func TestABatchThatHearsMuch(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	t.Run("the_error_of_the_last_of_many_savepoints_is_the_one_that_is_known", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		defer b.Rollback(t.Context())
		var last error
		for range 40 {
			last = pgx.BeginFunc(t.Context(), b.Tx(0), func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), h.inSchema("insert into in.once values ('there')"))
				return err
			})
		}
		if _, err := b.Tx(0).Exec(t.Context(), "select 1"); err != nil { // the transaction still works
			t.Fatal(err)
		}
		if class := b.(store.TxStatus).ClassifyHandler(t.Context(), last); class != store.ClassPermanent {
			t.Errorf("%v is of class %d", last, class)
		}
	})
	t.Run("trap_96_of_two_that_queue_an_end_the_first_is_to_blame", func(t *testing.T) {
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "b", "c", "d"))
		b.Tx(1).Exec("rollback")
		b.Tx(2).Exec("commit")
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassPermanent, 1)
		h.wantNothing(t, "b", "c", "d")
	})
}

func TestABatchThatWaitsItsTurnUnderAServersLimit(t *testing.T) {
	dsn := services.Postgres(t)
	h := newFixture(t, openPool(t, dsn))
	limited := h.withPool(t, openPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["statement_timeout"] = "200ms" }))
	t.Run("the_wait_is_as_long_as_it_was_told_and_not_as_a_statement_may_take", func(t *testing.T) {
		serial := store.TxOptions{Serial: true, Turn: 20 * time.Second, Idle: time.Minute}
		first, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, serial, h.makeMarks(t, "first"))
		ended, marks := make(chan error, 1), limited.makeMarks(t, "second")
		go func() {
			b, _, err := limited.Begin(t.Context(), serial, marks)
			if err == nil {
				b.Rollback(t.Context())
			}
			ended <- err
		}()
		if _, err := h.pool.Exec(t.Context(), "select pg_sleep(1)"); err != nil {
			t.Error(err)
		}
		first.Rollback(t.Context())
		if err := <-ended; err != nil {
			t.Errorf("it lost its place: %v", err)
		}
	})
}
