package postgresfaults

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/workload"
)

func TestSavepoints(t *testing.T) {
	t.Run("trap_111_no_batch_sets_one_whatever_fails_in_it", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t))
			proxy := pgproxy.Start(t, dsn)
			var statements, savepoints atomic.Int64
			proxy.Watch(func(m pgproxy.Message) {
				if m.Direction == pgproxy.Request {
					statements.Add(1)
					if strings.Contains(strings.ToLower(m.SQL), "savepoint") {
						savepoints.Add(1)
					}
				}
			})
			w := begin(t, settings{driver: driver, dsn: dsn, through: proxy.DSN(), change: oneWorker, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if err := workload.Effect("here")(ctx, exec, m); err != nil || m.Identity.ID != "bad" {
					return err
				}
				return exec(ctx, `select 1 / 0`)
			}})
			ids := makeIDs("m", 200)
			w.deliver(ids...)
			w.waitApplied(ids...)
			deliverAround(t, w, message("bad", `{}`))
			if statements.Load() < 200 || savepoints.Load() != 0 {
				t.Errorf("%d savepoints in %d statements", savepoints.Load(), statements.Load())
			}
		})
	})
}

// documentedQuery returns the query of a documentation page that begins with a given text.
func documentedQuery(t *testing.T, page, begins string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```sql\n"+begins)
	query, _, found := strings.Cut(after, ";\n```")
	if !found {
		t.Fatalf("docs/%s shows no query that begins with %q", page, begins)
	}
	return begins + query
}

func TestALongTransactionOfAStranger(t *testing.T) {
	t.Run("trap_112_is_shown_by_the_query_of_the_documentation_and_stops_nobody", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t))})
			stranger, err := w.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stranger.Rollback() }()
			for _, s := range []string{`set transaction isolation level repeatable read`, `select 1`} {
				if _, err := stranger.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			var pid int
			if err := stranger.QueryRow(`select pg_backend_pid()`).Scan(&pid); err != nil {
				t.Fatal(err)
			}
			ids := makeIDs("m", 500)
			w.deliver(ids...)
			w.waitApplied(ids...)
			open := documentedQuery(t, "guides/postgres.md", "select pid, application_name, state")
			if n := queryOne[int](t, w.db, `select count(*) from (`+open+`) shown where pid = $1 and holds_back > 0`, pid); n != 1 {
				t.Errorf("the query shows the stranger %d times", n)
			}
		})
	})
}
