package pgxstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
)

// A statement that fails with the code of a deadlock. The statement returns a row first, so that the query starts
// without an error.
const deadlocked = `select case when n = 1 then 'here' else fail() end from generate_series(1, 2) n`

// ways has the ways in which a handler can send a statement and ignore the error that the server returns.
var ways = map[string]func(t *testing.T, tx pgx.Tx){
	"Exec": func(t *testing.T, tx pgx.Tx) { _, _ = tx.Exec(t.Context(), deadlocked) },
	"Query": func(t *testing.T, tx pgx.Tx) {
		rows, err := tx.Query(t.Context(), deadlocked)
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
	},
	"QueryRow": func(t *testing.T, tx pgx.Tx) {
		var s string
		_ = tx.QueryRow(t.Context(), deadlocked+" offset 1").Scan(&s)
	},
	"SendBatch": func(t *testing.T, tx pgx.Tx) {
		b := &pgx.Batch{}
		b.Queue("select 1")
		b.Queue(deadlocked)
		_ = tx.SendBatch(t.Context(), b).Close()
	},
	"SendBatch, Exec": func(t *testing.T, tx pgx.Tx) {
		b := &pgx.Batch{}
		b.Queue(deadlocked)
		b.Queue("select 1")
		results := tx.SendBatch(t.Context(), b)
		_, _ = results.Exec()
		_ = results.Close()
	},
	"SendBatch, Query": func(t *testing.T, tx pgx.Tx) {
		b := &pgx.Batch{}
		b.Queue(deadlocked)
		results := tx.SendBatch(t.Context(), b)
		rows, _ := results.Query()
		rows.Close()
		_ = results.Close()
	},
	"SendBatch, QueryRow": func(t *testing.T, tx pgx.Tx) {
		b := &pgx.Batch{}
		b.Queue(deadlocked + " offset 1")
		results := tx.SendBatch(t.Context(), b)
		var s string
		_ = results.QueryRow().Scan(&s)
		_ = results.Close()
	},
	"CopyFrom": func(t *testing.T, tx pgx.Tx) {
		_, _ = tx.CopyFrom(t.Context(), pgx.Identifier{"failing"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}}))
	},
	"and went on": func(t *testing.T, tx pgx.Tx) {
		_, _ = tx.Exec(t.Context(), deadlocked)
		_, _ = tx.Exec(t.Context(), "select 1")
	},
	"after a savepoint took another back": func(t *testing.T, tx pgx.Tx) {
		_ = pgx.BeginFunc(t.Context(), tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "select 1 / 0")
			return err
		})
		_, _ = tx.Exec(t.Context(), deadlocked)
	},
}

func TestWhatBrokeABatch(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	h.exec(t, `create function public.fail() returns text language plpgsql as $$ begin raise exception 'no' using errcode = '40P01'; end $$`)
	h.exec(t, `create table public.failing (n int)`)
	h.exec(t, `create function public.refuse() returns trigger language plpgsql as $$ begin perform public.fail(); return new; end $$`)
	h.exec(t, `create trigger refuse before insert on public.failing for each row execute function public.refuse()`)
	by := func(t *testing.T, do func(tx pgx.Tx)) error {
		t.Helper()
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		defer b.Rollback(t.Context())
		if err := b.(store.TxStatus).AbortCause(); err != nil {
			t.Errorf("a sound batch was broken by %v", err)
		}
		do(b.Tx(0))
		if !b.(store.TxStatus).TxAborted() {
			t.Fatal("the batch does not know that it is broken")
		}
		return b.(store.TxStatus).AbortCause()
	}
	for name, way := range ways {
		t.Run("trap_95_the_error_that_broke_it_is_known_by/"+name, func(t *testing.T) {
			err := by(t, func(tx pgx.Tx) { way(t, tx) })
			var server *pgconn.PgError
			if !errors.As(err, &server) || server.Code != "40P01" || h.Classify(err) != store.ClassContended {
				t.Errorf("it was broken by %v", err)
			}
		})
	}
	t.Run("law_13_a_connection_that_is_lost_is_what_broke_it", func(t *testing.T) {
		err := by(t, func(tx pgx.Tx) { _, _ = tx.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())") })
		if h.Classify(err) != store.ClassDown {
			t.Errorf("it was broken by %v", err)
		}
	})
	t.Run("trap_96_a_handlers_own_end_is_its_messages_for_good", func(t *testing.T) {
		for _, statement := range []string{"rollback", "commit"} {
			err := by(t, func(tx pgx.Tx) { _, _ = tx.Conn().Exec(t.Context(), statement) })
			if h.Classify(err) != store.ClassPermanent {
				t.Errorf("%s: it was broken by %v", statement, err)
			}
		}
	})
	t.Run("trap_T99_what_follows_a_handlers_end_is_refused_however_often_it_tries", func(t *testing.T) {
		for _, statement := range []string{"rollback", "commit"} {
			err := by(t, func(tx pgx.Tx) {
				_, _ = tx.Exec(t.Context(), statement)
				for range 2 {
					if _, err := tx.Exec(t.Context(), "select 1"); !errors.Is(err, pgx.ErrTxClosed) {
						t.Errorf("after a %s: %v", statement, err)
					}
				}
			})
			if h.Classify(err) != store.ClassPermanent {
				t.Errorf("%s: it was broken by %v", statement, err)
			}
		}
	})
	t.Run("trap_95_rows_left_open_are_their_messages_for_good", func(t *testing.T) {
		err := by(t, func(tx pgx.Tx) { _, _ = tx.Query(t.Context(), "select generate_series(1, 10)") })
		if h.Classify(err) != store.ClassPermanent {
			t.Errorf("it was broken by %v", err)
		}
	})
	t.Run("an_error_met_beside_the_transaction_is_not_known", func(t *testing.T) {
		if err := by(t, func(tx pgx.Tx) { _, _ = tx.Conn().Exec(t.Context(), "select 1 / 0") }); err != nil {
			t.Errorf("it was broken by %v", err)
		}
	})
}

func TestWhatABatchHeardDecides(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	spoil := h.inSchema("insert into in.once values ('there')")
	classOf := func(t *testing.T, handler func(tx pgx.Tx) error) store.Class {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		defer b.Rollback(t.Context())
		return b.(store.TxStatus).ClassifyHandler(t.Context(), handler(b.Tx(0)))
	}
	for name, c := range map[string]struct {
		handler func(tx pgx.Tx) error
		want    store.Class
	}{
		"of_a_savepoint": {func(tx pgx.Tx) error {
			return pgx.BeginFunc(t.Context(), tx, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), spoil); return err })
		}, store.ClassPermanent},
		"contention_that_the_handler_hid": {func(tx pgx.Tx) error {
			_, _ = tx.Exec(t.Context(), "do $$ begin raise exception 'no' using errcode = '40P01'; end $$")
			return errors.New("it did not work")
		}, store.ClassContended},
		"after_an_error_that_the_handler_swallowed": {func(tx pgx.Tx) error {
			_, _ = tx.Exec(t.Context(), spoil)
			_, err := tx.Exec(t.Context(), "select 1")
			return err
		}, store.ClassAborted},
		"on_the_connection_itself":         {func(tx pgx.Tx) error { _, err := tx.Conn().Exec(t.Context(), spoil); return err }, store.ClassPermanent},
		"another_transaction_that_is_over": {func(pgx.Tx) error { return pgx.ErrTxClosed }, store.ClassRetry},
		"another_database": {func(pgx.Tx) error {
			_, err := h.pool.Exec(t.Context(), spoil)
			return err
		}, store.ClassRetry},
		"a_lost_connection": {func(tx pgx.Tx) error {
			_ = tx.Conn().PgConn().Conn().Close()
			_, _ = tx.Exec(t.Context(), "select 1")
			return errors.New("it did not work")
		}, store.ClassDown},
		"its_own_deadline": {func(tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, "select pg_sleep(35)")
			return err
		}, store.ClassRetry},
	} {
		t.Run("trap_T84_"+name, func(t *testing.T) {
			if got := classOf(t, c.handler); got != c.want {
				t.Errorf("class %v, want %v", got, c.want)
			}
		})
	}
}
