package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestAServerThatCannotWork(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	s := newFixture(t, openDB(t, dsn), sqlstore.Options{})
	marks := s.makeMarks(t, "a", "b")
	begin := func(db string, options ...string) (*sqlstore.Store, error) {
		st := newUnmigratedStore(t, openDB(t, db, options...), sqlstore.Options{Schema: s.schema})
		_, _, err := st.Begin(t.Context(), store.TxOptions{}, marks)
		return st, err
	}
	t.Run("trap_104_a_server_that_only_reads_is_down_with_the_remedy", func(t *testing.T) {
		st, err := begin(dsn, "default_transaction_read_only=on")
		s.expectError(t, err, store.ClassDown, "target_session_attrs")
		if err := st.Check(t.Context()); err != nil {
			t.Errorf("the check needs to write: %v", err)
		}
	})
	t.Run("too_many_connections_a_role_that_may_not_log_in_and_a_missing_database_are_down", func(t *testing.T) {
		db := worker(t, dsn, fmt.Sprintf(`grant usage on schema %[1]q to worker;
			grant select, insert, update, delete on all tables in schema %[1]q to worker`, s.schema))
		role := queryOne[string](t, db, "select current_user")
		st := newUnmigratedStore(t, db, sqlstore.Options{Schema: s.schema})
		services.Exec(t, dsn, "alter role "+role+" connection limit 1")
		first, _, err := st.Begin(t.Context(), store.TxOptions{}, marks)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = st.Begin(t.Context(), store.TxOptions{}, s.makeMarks(t, "c"))
		s.expectError(t, err, store.ClassDown, "max_connections")
		services.Exec(t, dsn, "alter role "+role+" nologin")
		_, _, err = st.Begin(t.Context(), store.TxOptions{}, s.makeMarks(t, "c"))
		s.expectError(t, err, store.ClassDown, "pg_hba.conf")
		first.Rollback(t.Context())
		u, _ := url.Parse(dsn)
		u.Path = "/nowhere"
		_, err = begin(u.String())
		s.expectError(t, err, store.ClassDown, "the database in the connection string does not exist")
	})
}

func TestAServerThatIsSilentOrWaitsInVain(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	s := newFixture(t, openDB(t, dsn), sqlstore.Options{})
	marks := s.makeMarks(t, "a", "b")
	t.Run("trap_101_a_handler_that_is_idle_for_too_long_hears_it_and_leaves_nothing", func(t *testing.T) {
		b, _ := s.begin(t, store.TxOptions{Idle: 2 * time.Second}, marks)
		if err := s.Effect(t.Context(), b.Tx(0), "a"); err != nil {
			t.Fatal(err)
		}
		waitTrue(t, s.db, "select not exists (select from pg_stat_activity where state like 'idle in transaction%' and datname = current_database())")
		s.expectError(t, s.Effect(t.Context(), b.Tx(1), "b"), store.ClassDown, "")
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassDown {
			t.Errorf("the commit says %+v, want not committed, down", r)
		}
		s.expectWorks(t, marks)
	})
	t.Run("law_11_a_server_that_does_not_answer_ends_no_call_later_than_its_context", func(t *testing.T) {
		p := pgproxy.Start(t, dsn)
		silent := newFixture(t, openDB(t, p.DSN()), sqlstore.Options{})
		marks := silent.makeMarks(t, "a")
		for _, held := range []string{"begin", "semel_markers", "delete from"} {
			rule := p.HoldRequest(pgproxy.Containing(held))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			b, _, err := silent.store.Begin(ctx, store.TxOptions{}, marks)
			if err == nil {
				if r := b.Commit(ctx, store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassDown {
					t.Errorf("%s: the commit says %+v, want not committed, down", held, r)
				}
			} else {
				silent.expectError(t, err, store.ClassDown, "")
			}
			cancel()
			rule.Remove()
		}
		b, _ := silent.begin(t, store.TxOptions{}, marks)
		rule := p.HoldRequest(pgproxy.Containing("rollback"))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		b.Rollback(ctx)
		rule.Remove()
		silent.expectWorks(t, marks)
	})
}

func TestAServerThatRestarts(t *testing.T) {
	server := services.StartPostgres(t, services.Options{})
	s := newFixture(t, openDB(t, server.DSN()), sqlstore.Options{})
	for name, stop := range map[string]func(){"stops": server.Stop, "is_killed": server.Kill} {
		t.Run("trap_130_a_server_that_"+name+"_in_a_batch_costs_nothing_but_time", func(t *testing.T) {
			marks := s.makeMarks(t, name, name+" 2")
			b, _ := s.begin(t, store.TxOptions{}, marks)
			if err := s.Effect(t.Context(), b.Tx(0), name); err != nil {
				t.Fatal(err)
			}
			stop()
			s.expectError(t, s.Effect(t.Context(), b.Tx(1), name+" 2"), store.ClassDown, "")
			b.Rollback(t.Context())
			_, _, err := s.store.Begin(t.Context(), store.TxOptions{}, marks)
			s.expectError(t, err, store.ClassDown, "")
			server.Start()
			s.expectWorks(t, marks)
		})
	}
}

func TestPools(t *testing.T) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	db := openDB(t, dsn)
	db.SetMaxOpenConns(1)
	s := newFixture(t, db, sqlstore.Options{})
	marks := s.makeMarks(t, "a")
	t.Run("trap_27_a_handler_that_needs_a_second_connection_of_a_pool_of_one_gets_an_error_and_no_deadlock", func(t *testing.T) {
		b, _ := s.begin(t, store.TxOptions{}, marks)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(ctx, "select 1")
		s.expectError(t, err, store.ClassRetry, "deadline")
		_, _, err = s.store.Begin(ctx, store.TxOptions{}, s.makeMarks(t, "a"))
		s.expectError(t, err, store.ClassDown, "")
		if _, err := s.store.Scope(ctx, "another", "", 0); s.store.Classify(err) != store.ClassDown {
			t.Errorf("got %v, want down", err)
		}
		if err := s.Effect(t.Context(), b.Tx(0), "a"); err != nil {
			t.Error(err)
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Errorf("the commit says %+v", r)
		}
		s.expectWorks(t, marks)
	})
	t.Run("a_batch_takes_one_connection_and_gives_it_back", func(t *testing.T) {
		b, _ := s.begin(t, store.TxOptions{Serial: true}, marks)
		if n := db.Stats().OpenConnections; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		b.Rollback(t.Context())
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%d connections are held", n)
		}
	})
}

func TestNoNamesOutliveATransaction(t *testing.T) {
	t.Run("trap_108_no_setting_and_no_lock_outlives_a_batch", func(t *testing.T) {
		db := newDatabase(t)
		db.SetMaxOpenConns(1)
		s := newFixture(t, db, sqlstore.Options{})
		before := queryOne[string](t, db, settings)
		for _, end := range []func(store.Batch[*sql.Tx]){
			func(b store.Batch[*sql.Tx]) { b.Commit(t.Context(), store.Ending{}) },
			func(b store.Batch[*sql.Tx]) { b.Rollback(t.Context()) },
		} {
			b, _ := s.begin(t, store.TxOptions{Serial: true, Idle: time.Minute}, s.makeMarks(t, "a"))
			end(b)
			if after := queryOne[string](t, db, settings); after != before {
				t.Errorf("settings are %s, want %s", strings.ReplaceAll(after, "\n", " "), before)
			}
			if n := queryOne[int](t, db, "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"); n != 0 {
				t.Errorf("%d advisory locks are held", n)
			}
		}
	})
}

const settings = `select string_agg(name || '=' || setting, ' ' order by name) from pg_settings where name ~ 'timeout|isolation|search_path'`
