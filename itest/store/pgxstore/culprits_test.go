package pgxstore

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// batchOf returns an open batch of ten messages. Each message has queued its effect. Message 6 has also queued the
// statements that the function queue adds.
func batchOf(t testing.TB, h *fixture, queue func(q *pgxstore.Queue)) store.Batch[*pgxstore.Queue] {
	t.Helper()
	ids := makeIDs(0, 10)
	b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, ids...))
	for i := range ids {
		b.Tx(i).ExecOne(h.inSchema(insert), []byte(ids[i]))
		if i == 6 {
			queue(b.Tx(i))
		}
	}
	return b
}

func TestWhoIsToBlameInAQueue(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	refused := errors.New("not today")
	for _, c := range []struct {
		name  string
		queue func(h *fixture, q *pgxstore.Queue)
		class store.Class
	}{
		{"a_constraint", func(h *fixture, q *pgxstore.Queue) { q.Exec(h.inSchema("insert into in.once values ('there')")) }, store.ClassPermanent},
		{"a_table_that_is_not_there", func(h *fixture, q *pgxstore.Queue) { q.Exec("insert into nowhere values (1)") }, store.ClassPermanent},
		{"a_fault_of_syntax", func(h *fixture, q *pgxstore.Queue) { q.Exec("insrt into nowhere") }, store.ClassPermanent},
		{"an_argument_that_cannot_be_sent", func(h *fixture, q *pgxstore.Queue) { q.Exec(h.inSchema(insert), struct{ A chan int }{}) }, store.ClassPermanent},
		{"too_few_arguments", func(h *fixture, q *pgxstore.Queue) { q.Exec(h.inSchema(insert)) }, store.ClassPermanent},
		{"trap_80_a_NUL_in_a_text", func(h *fixture, q *pgxstore.Queue) { q.Exec(h.inSchema("insert into in.once values ($1)"), "a\x00b") }, store.ClassPermanent},
		{"trap_81_a_lone_surrogate_in_jsonb", func(h *fixture, q *pgxstore.Queue) {
			q.Exec(h.inSchema("insert into in.once values (($1::text)::jsonb ->> 'a')"), `{"a":"\ud800"}`)
		}, store.ClassPermanent},
		{"no_row_where_one_must_change", func(h *fixture, q *pgxstore.Queue) {
			q.ExecOne(h.inSchema("update in.once set name = name where name = $1;"), "gone")
		}, store.ClassPermanent},
		{"two_rows_where_one_must_change", func(h *fixture, q *pgxstore.Queue) {
			q.ExecOne(h.inSchema("insert into in.once values ('x'), ('y') -- two"))
		}, store.ClassPermanent},
		{"a_callback_that_refuses", func(h *fixture, q *pgxstore.Queue) {
			q.Query("select 1").Do(func(pgx.Rows) error { return refused })
		}, store.ClassRetry},
		{"trap_T84_a_callback_that_meets_an_end_of_file", func(h *fixture, q *pgxstore.Queue) {
			q.Query("select 1").Do(func(pgx.Rows) error { return io.EOF })
		}, store.ClassRetry},
		{"a_callback_behind_another", func(h *fixture, q *pgxstore.Queue) {
			q.Query("select 1").Do(func(pgx.Rows) error {
				q.Query("select 2").Do(func(pgx.Rows) error { return refused })
				return nil
			})
		}, store.ClassRetry},
		{"a_statement_that_a_callback_queued", func(h *fixture, q *pgxstore.Queue) {
			q.Query("select 1").Do(func(pgx.Rows) error { q.Exec("select 1 / 0"); return nil })
		}, store.ClassPermanent},
		{"an_exception_raised_by_a_trigger", func(h *fixture, q *pgxstore.Queue) {
			q.Exec("do $$ begin raise exception 'no'; end $$")
		}, store.ClassPermanent},
	} {
		t.Run("case_1_the_culprit_is_the_message_that_queued/"+c.name, func(t *testing.T) {
			h := newFixture(t, pool)
			for range 2 { // in the second run the statements are prepared already
				wantRefused(t, batchOf(t, h, func(q *pgxstore.Queue) { c.queue(h, q) }).Commit(t.Context(), store.Ending{}), c.class, 6)
				h.wantNothing(t, makeIDs(0, 10)...)
			}
			wantCommitted(t, deliverQueued(t, h, makeIDs(0, 6)))
			h.wantApplied(t, makeIDs(0, 6)...)
		})
	}
}

func TestRowsThatACallbackReads(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	t.Run("callbacks_see_their_rows_and_what_was_queued_before", func(t *testing.T) {
		var names [][]byte
		seen := 0
		b := batchOf(t, h, func(q *pgxstore.Queue) {
			q.Query(h.inSchema("select name from in.effects order by name")).Do(func(rows pgx.Rows) (err error) {
				names, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
				return err
			})
			q.Query("select 1").Do(func(rows pgx.Rows) error {
				for rows.Next() {
					seen++
				}
				return nil
			})
		})
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		if len(names) != 7 || seen != 1 {
			t.Errorf("the callbacks saw %q and %d rows", names, seen)
		}
		h.wantApplied(t, makeIDs(0, 10)...)
	})
	t.Run("what_a_callback_queues_is_sent_before_the_commit", func(t *testing.T) {
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "late"))
		q := b.Tx(0)
		q.Query("select 7").Do(func(rows pgx.Rows) error {
			n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			q.Exec(h.inSchema(insert), fmt.Append(nil, "late", n))
			return err
		})
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		if h.count(t, "late7") != 1 {
			t.Error("the statement of the callback was not sent")
		}
	})
	t.Run("an_error_that_the_server_sends_among_rows_is_the_messages", func(t *testing.T) {
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "x", "y"))
		b.Tx(1).Query("select 1 / (3 - n) from generate_series(1, 5) n").Do(func(rows pgx.Rows) error {
			for rows.Next() {
			}
			return nil
		})
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassPermanent, 1)
		h.wantNothing(t, "x", "y")
	})
}

func TestUnmetStatements(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	t.Run("a_statement_that_meets_no_row_is_unmet_and_says_which", func(t *testing.T) {
		b := batchOf(t, h, func(q *pgxstore.Queue) {
			q.ExecOne(h.inSchema("update in.once set name = name where name = $1"), "gone")
		})
		r := b.Commit(t.Context(), store.Ending{})
		var decided *semel.HandlerError
		if !errors.As(r.Err, &decided) || decided.Decision != semel.DecidePreconditionFailed || !strings.Contains(r.Err.Error(), "update") {
			t.Errorf("the error is %v", r.Err)
		}
	})
	t.Run("statements_of_every_kind_are_counted_by_the_server", func(t *testing.T) {
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "kinds"))
		q := b.Tx(0)
		q.ExecOne(h.inSchema("insert into in.once values ($1) on conflict do nothing"), "k")
		q.ExecOne(h.inSchema("with w as (select $1::text as name) update in.once o set name = 'l' from w where o.name = w.name ; "), "k")
		q.ExecOne(h.inSchema("delete from in.once where name = @name -- at last"), pgx.NamedArgs{"name": "l"})
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
	})
}
