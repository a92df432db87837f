package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestEachForgeryIsFoundInATable(t *testing.T) {
	db := newDatabase(t)
	sqlsuite.Forgeries(t, func(t testing.TB) sqlsuite.Forged {
		s := newFixture(t, db, sqlstore.Options{})
		return sqlsuite.Forged{Store: s.store, Exec: func(t testing.TB, statement string) {
			t.Helper()
			s.exec(t, "alter table in.semel_acts disable trigger all")
			s.exec(t, "alter table in.semel_seals disable trigger all")
			s.exec(t, statement)
		}}
	})
}

func TestSealingWaitsForNobodyAndLeavesNothingOut(t *testing.T) {
	dsn := services.Postgres(t)
	db := openDB(t, dsn)
	t.Run("G6_an_act_that_commits_late_is_sealed_when_it_is_there", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		sqlsuite.LateActs(t, s.store, func(t testing.TB) func() {
			tx, err := db.Begin()
			if err == nil {
				_, err = tx.Exec(s.inSchema(`insert into in.semel_acts ("row", verb, who, why, result, at) values (0, 'late', 'bo', 'slow', 'done', clock_timestamp())`))
			}
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	})
	t.Run("G6_a_sealing_that_is_killed_goes_on", func(t *testing.T) {
		for _, at := range []int{0, 2, 5} {
			s := newFixture(t, db, sqlstore.Options{})
			sqlsuite.Acted(t, s.store, 1, 5)
			kill := func(lines int) {
				if lines == at {
					exec(t, db, "select pg_terminate_backend(pid, 10000) from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database()) and pid <> pg_backend_pid()")
				}
			}
			if done, err := s.store.Seal(t.Context(), admin.Sealing{At: kill}); err == nil || done.Lines != 0 {
				t.Errorf("killed at %d: %+v, %v", at, done, err)
			}
			if n := sqlsuite.SealedAll(t, s.store, nil); n != 5 {
				t.Errorf("after a kill at %d %d lines were sealed", at, n)
			}
			if found, r := sqlsuite.AuditFindings(t, s.store, nil); len(found) > 0 || r.Lines != 5 {
				t.Errorf("after a kill at %d: %q in %d lines", at, found, r.Lines)
			}
		}
	})
	t.Run("G6_a_foreign_number_does_not_stall_the_sealing", func(t *testing.T) {
		for _, role := range []string{"owner", "service"} {
			s := newFixture(t, db, sqlstore.Options{})
			store := s.store
			if role == "service" { // the role inserts changes but must not read their sequence
				store = newUnmigratedStore(t, worker(t, dsn, fmt.Sprintf("grant usage on schema %[1]q to worker; grant select, insert on all tables in schema %[1]q to worker; "+
					"grant update on %[1]q.semel_seal_end to worker", s.schema)), sqlstore.Options{Schema: s.schema})
			}
			sqlsuite.Acted(t, store, 1, 3)
			sqlsuite.SealedAll(t, store, nil)
			s.exec(t, `insert into in.semel_acts (number, "row", verb, who, why, result, at) overriding system value
				values (9223372036854775807, 0, 'discard', 'bo', 'forged', 'done', clock_timestamp())`)
			forged, err := store.Seal(t.Context(), admin.Sealing{})
			if err != nil || role == "owner" && forged.Lines != 0 {
				t.Errorf("as %s: the foreign number is sealed: %+v, %v", role, forged, err)
			}
			sqlsuite.Acted(t, store, 4, 6)
			if done, err := store.Seal(t.Context(), admin.Sealing{}); err != nil || done.Lines != 3 {
				t.Errorf("as %s: %+v acts are sealed behind a foreign number: %v", role, done, err)
			}
		}
	})
	t.Run("G6_of_two_that_seal_one_returns_at_once", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		sqlsuite.Acted(t, s.store, 1, 3)
		var beside admin.Sealed
		var err error
		done, first := s.store.Seal(t.Context(), admin.Sealing{At: func(lines int) {
			if lines == 1 {
				beside, err = s.store.Seal(t.Context(), admin.Sealing{})
			}
		}})
		if first != nil || done.Lines != 3 || err != nil || !beside.Elsewhere || beside.Lines != 0 {
			t.Errorf("the first %+v, %v, the second %+v, %v", done, first, beside, err)
		}
	})
}

// waits collects the lock waits of connections from the server's log. The server logs each wait that is
// longer than a millisecond.
type waits struct {
	mu   sync.Mutex
	told []string
}

func (w *waits) open(t testing.TB, dsn string) *sql.DB {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"log_lock_waits": "on", "deadlock_timeout": "1ms", "client_min_messages": "log"} {
		config.RuntimeParams[name] = value
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if strings.Contains(n.Message, "still waiting for") {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, n.Message+" "+n.Where)
		}
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A consumer applies batches while eight operators change rows and two processes extend the audit chain (the hash chain
// over recorded changes).
func TestActsCostAConsumerNoLockWait(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	operators := openDB(t, dsn)
	var w waits
	consumers := w.open(t, dsn)
	shop := newFixture(t, operators, sqlstore.Options{})
	mine := fixtureOf(t, consumers, newUnmigratedStore(t, consumers, sqlstore.Options{Schema: shop.schema}), shop.schema)
	t.Run("G6_acts_of_eight_operators_and_their_sealing_cost_a_consumer_no_lock_wait", func(t *testing.T) {
		var acting sync.WaitGroup
		var over atomic.Bool
		for i := range 10 {
			acting.Go(func() {
				for n := 0; !over.Load(); n++ {
					var err error
					switch a := (store.Act{Verb: "test", Who: fmt.Sprint("operator ", i), Why: fmt.Sprint(n)}); {
					case i >= 8:
						_, err = shop.store.Seal(context.WithoutCancel(t.Context()), admin.Sealing{Most: 50, Whole: n%10 == 0})
					case i%2 == 0:
						err = shop.store.Pause(context.WithoutCancel(t.Context()), fmt.Sprint("consumer ", i), n%2 == 0, a)
					default:
						err = shop.store.Record(context.WithoutCancel(t.Context()), a)
					}
					if err != nil {
						t.Errorf("operator %d: %v", i, err)
						return
					}
				}
			})
		}
		for n := range 200 {
			var ids []string
			for i := range 20 {
				ids = append(ids, fmt.Sprintf("message %d of %d", i, n))
			}
			if r, err := mine.attempt(t, mine.makeMarks(t, ids...)); err != nil || r.Outcome != store.Committed {
				t.Fatalf("batch %d: %+v, %v", n, r, err)
			}
		}
		over.Store(true)
		acting.Wait()
		if len(w.told) > 0 {
			t.Errorf("the consumer has waited %d times, first: %s", len(w.told), w.told[0])
		}
		sqlsuite.SealedAll(t, shop.store, nil)
		found, r := sqlsuite.AuditFindings(t, shop.store, nil)
		if len(found) > 0 || r.Lines == 0 || r.Lines != queryOne[int64](t, operators, shop.inSchema("select count(*) from in.semel_acts")) {
			t.Errorf("%q in %d lines", found, r.Lines)
		}
		t.Logf("%d acts", r.Lines)
	})
	t.Run("G6_a_wait_would_have_been_told", func(t *testing.T) {
		tx, err := operators.Begin()
		if err == nil {
			_, err = tx.Exec(shop.inSchema("lock table in.semel_acts in access exclusive mode"))
		}
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- mine.store.Record(context.WithoutCancel(t.Context()), store.Act{Verb: "x", Who: "x"})
		}()
		waitTrue(t, operators, "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and clock_timestamp() > query_start + interval '100ms')")
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil || len(w.told) == 0 {
			t.Errorf("told are %q: %v", w.told, err)
		}
	})
}
