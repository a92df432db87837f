package pgxstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// useSmallCache configures a pool with a single connection and a small cache of prepared statements.
func useSmallCache(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.StatementCacheCapacity = 1, 64 }

func TestPreparedStatements(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t), useSmallCache))
	prepared := func() int {
		return h.number(t, "select count(*) from pg_prepared_statements where name like 'semel%'")
	}
	t.Run("law_11_a_connection_keeps_a_bounded_number", func(t *testing.T) {
		for n := range 10 {
			ids := makeIDs(100*n, 100*n+30)
			b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, ids...))
			for i, id := range ids {
				b.Tx(i).ExecOne(h.inSchema("insert into in.effects values ('" + id + "')"))
			}
			wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
			if got := prepared(); got > 64 || got == 0 {
				t.Fatalf("%d statements are prepared", got)
			}
			h.wantApplied(t, ids...)
		}
	})
	t.Run("a_batch_may_have_more_statements_than_a_connection_keeps", func(t *testing.T) {
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "many"))
		for i := range 200 {
			b.Tx(0).Exec(fmt.Sprintf("select %d", i))
		}
		b.Tx(0).ExecOne(h.inSchema(insert), []byte("many"))
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		wantCommitted(t, deliverQueued(t, h, []string{"next"}))
		h.wantApplied(t, "many", "next")
	})
	t.Run("statements_that_somebody_deallocated_are_prepared_anew", func(t *testing.T) {
		wantCommitted(t, deliverQueued(t, h, []string{"before"}))
		h.exec(t, `do $$ declare name text; begin
			for name in select p.name from pg_prepared_statements p where p.name like 'semel%' loop
				execute 'deallocate ' || name;
			end loop;
		end $$`)
		_, _, err := h.Begin(t.Context(), store.TxOptions{}, h.makeMarks(t, "after"))
		if err == nil || h.Classify(err) != store.ClassContended {
			t.Errorf("the batch says %v", err)
		}
		wantCommitted(t, deliverQueued(t, h, []string{"after"}))
		h.wantApplied(t, "before", "after")
	})
}

func TestTablesThatChangeUnderPreparedStatements(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t), useSmallCache))
	t.Run("a_table_that_changes_under_a_prepared_statement_harms_nobody", func(t *testing.T) {
		queue := func(id string) store.Result {
			b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, id))
			b.Tx(0).Query(h.inSchema("insert into in.once values ($1) returning *"), id).Do(func(rows pgx.Rows) error {
				for rows.Next() {
				}
				return nil
			})
			return b.Commit(t.Context(), store.Ending{})
		}
		wantCommitted(t, queue("x"))
		h.exec(t, "alter table in.once add column extra int")
		if r := queue("y"); r.Outcome != store.Committed {
			wantRefused(t, r, store.ClassContended, 0)
			wantCommitted(t, queue("y"))
		}
	})
	for name, run := range map[string]func(tx pgx.Tx, id string) error{
		"by_pgx": func(tx pgx.Tx, id string) error {
			_, err := tx.Exec(t.Context(), h.inSchema("insert into in.once values ($1) returning *"), id)
			return err
		},
		"by_the_handler": func(tx pgx.Tx, id string) error {
			if _, err := tx.Prepare(t.Context(), "mine", h.inSchema("insert into in.once values ($1) returning *")); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), "mine", id)
			return err
		},
	} {
		t.Run("trap_T102_a_table_that_changes_is_nobodys_fault_and_the_next_run_works/"+name, func(t *testing.T) {
			deliver := func(id string) error {
				b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, id))
				err := run(b.Tx(0), id)
				if err != nil {
					if c := h.Classify(err); c != store.ClassContended {
						t.Errorf("%v is of class %v, want contended", err, c)
					}
					b.Rollback(t.Context())
					return err
				}
				wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
				return nil
			}
			if err := deliver("before " + name); err != nil {
				t.Fatal(err)
			}
			h.exec(t, "alter table in.once add column "+name+" int")
			if deliver("after "+name) == nil {
				t.Error("the situation did not occur: the old plan fits")
			}
			if err := deliver("after " + name); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// A server keeps a plan until its tables are analyzed. A plan that was made while a table had one page reads
// the whole table.
func TestPlansOfTablesThatGrow(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t), useSmallCache))
	h.exec(t, "alter table in.semel_markers set (autovacuum_enabled = false)")
	again := func(n int) {
		t.Helper()
		for range n {
			b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "1"))
			b.Rollback(t.Context())
		}
	}
	// judging returns the plan of the prepared statement that looks up markers.
	judging := func() string {
		t.Helper()
		var name string
		if err := h.pool.QueryRow(t.Context(), "select name from pg_prepared_statements where name like 'semel%' and statement like 'select a.number, m.outcome%'").Scan(&name); err != nil {
			t.Fatal(err)
		}
		rows, _ := h.pool.Query(t.Context(), "explain execute "+name+`('{0}', '{1}', '{"\\x31"}', '{"\\x"}')`)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	wantCommitted(t, deliverQueued(t, h, makeIDs(0, 20)))
	h.exec(t, "analyze in.semel_markers")
	again(20)
	if plan := judging(); !strings.Contains(plan, "Seq Scan on semel_markers") {
		t.Fatalf("a small table is not read whole, so nothing is proven:\n%s", plan)
	}
	h.exec(t, `insert into in.semel_markers (scope, id, outcome, version, at)
		select s.number, ('more' || n)::bytea, 1, 0, now() from in.semel_scopes s, generate_series(1, 50000) n limit 50000`)
	if plan := judging(); !strings.Contains(plan, "Seq Scan on semel_markers") {
		t.Fatalf("the plan did not stay, so nothing is proven:\n%s", plan)
	}
	again(300)
	if plan := judging(); strings.Contains(plan, "Seq Scan on semel_markers") {
		t.Errorf("the plan is still that of a small table:\n%s", plan)
	}
}
