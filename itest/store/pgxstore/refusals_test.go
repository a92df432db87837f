package pgxstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// foreignError returns a server error from another connection than the connection of the batch.
func foreignError(code string) error {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: "refused"}
}

func TestWhatACallbackReturnsIsItsRefusal(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	for _, c := range []struct {
		name     string
		read     func(pgx.Rows) error
		class    store.Class
		decision semel.Decision // 0 means that no decision is expected
	}{
		{"of_another_database", func(pgx.Rows) error { return foreignError("23514") }, store.ClassRetry, 0},
		{"of_another_database_that_contends", func(pgx.Rows) error { return foreignError("40001") }, store.ClassRetry, 0},
		{"wrapped", func(pgx.Rows) error { return semel.Permanent(fmt.Errorf("other: %w", foreignError("23514"))) }, store.ClassRetry, semel.DecidePermanent},
		{"joined", func(pgx.Rows) error { return errors.Join(semel.Park("overdrawn"), foreignError("40001")) }, store.ClassRetry, semel.DecidePark},
		{"with_rows_closed_before", func(rows pgx.Rows) error { rows.Close(); return foreignError("23514") }, store.ClassRetry, 0},
	} {
		t.Run("trap_T84_a_callbacks_refusal_with_an_error_of_PostgreSQL_commits_nothing/"+c.name, func(t *testing.T) {
			h := newFixture(t, pool)
			b := batchOf(t, h, func(q *pgxstore.Queue) { q.Query("select generate_series(1, 1000)").Do(c.read) })
			r := b.Commit(t.Context(), store.Ending{})
			wantRefused(t, r, c.class, 6)
			var decided *semel.HandlerError
			if errors.As(r.Err, &decided) != (c.decision != 0) || decided != nil && decided.Decision != c.decision {
				t.Errorf("the decision is %+v", decided)
			}
			h.wantNothing(t, makeIDs(0, 10)...)
		})
	}
	t.Run("a_callback_that_decides_about_an_error_of_its_own_statement_is_believed", func(t *testing.T) {
		h := newFixture(t, pool)
		b := batchOf(t, h, func(q *pgxstore.Queue) {
			q.Query("select 1 / (3 - n) from generate_series(1, 5) n").Do(func(rows pgx.Rows) error {
				for rows.Next() {
				}
				return errors.Join(semel.Discard("nothing to divide"), rows.Err())
			})
		})
		r := b.Commit(t.Context(), store.Ending{})
		wantRefused(t, r, store.ClassPermanent, 6)
		var decided *semel.HandlerError
		if !errors.As(r.Err, &decided) || decided.Decision != semel.DecideDiscard {
			t.Errorf("the error is %v", r.Err)
		}
	})
	t.Run("contention_of_its_own_statement_speaks_before_what_it_decided", func(t *testing.T) {
		h := newFixture(t, pool)
		b := batchOf(t, h, func(q *pgxstore.Queue) {
			q.Query(h.inSchema("select in.contends(n) from generate_series(1, 3) n")).Do(func(rows pgx.Rows) error {
				for rows.Next() {
				}
				return semel.Permanent(errors.New("no rows"))
			})
		})
		h.exec(t, "create function in.contends(n int) returns int language plpgsql as $$ begin if n = 2 then raise exception 'no' using errcode = '40001'; end if; return n; end $$")
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassContended, 6)
	})
}
