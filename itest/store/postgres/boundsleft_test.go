package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

// forbid makes an event trigger of what a body in PL/pgSQL does before tables
// are altered, until allow is called.
func forbid(t *testing.T, db *sql.DB, body string) (allow func()) {
	t.Helper()
	do := func(statement string) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	do(`create or replace function public.on_altering() returns event_trigger language plpgsql as $$ begin ` + body + ` end $$`)
	do(`create event trigger altering on ddl_command_start when tag in ('ALTER TABLE') execute function public.on_altering()`)
	return func() { do("drop event trigger altering") }
}

// as has another role or other settings migrate.
func (s *shop) as(t *testing.T, dsn string, ctx context.Context, setting string) error {
	t.Helper()
	other := mustStore(t, openDB(t, dsn, "options=-c"+setting), sqlstore.Options{Schema: s.schema})
	_, err := other.Migrate(ctx)
	return err
}

func TestConstraintsNeverFailAMigration(t *testing.T) {
	dsn := services.Postgres(t)
	db := openDB(t, dsn)
	both := []string{"known_outcomes", "known_states"}
	none := []string{"known_outcomes not valid", "known_states not valid"}
	t.Run("trap_T104_where_nobody_may_alter_tables_they_are_left_to_the_next", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		allow := forbid(t, db, "raise exception 'tables are altered on Sundays';")
		s.migrate(t)
		s.wantBounds(t)
		allow()
		s.migrate(t)
		s.wantBounds(t, both...)
	})
	t.Run("trap_T104_where_nothing_may_be_written_they_are_left_to_the_next", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		if err := s.as(t, dsn, t.Context(), "default_transaction_read_only%3Don"); err != nil {
			t.Error(err)
		}
		s.wantBounds(t)
		s.migrate(t)
		s.wantBounds(t, both...)
	})
	t.Run("trap_T104_a_limit_of_statements_does_not_hold_for_a_look_at_all_rows", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		allow := forbid(t, db, "if current_query() like '%validate constraint known_outcomes' then perform pg_sleep(1.3); end if;")
		defer allow()
		if err := s.as(t, dsn, t.Context(), "statement_timeout%3D1s"); err != nil {
			t.Error(err)
		}
		s.wantBounds(t, both...)
	})
	t.Run("trap_T104_a_deadline_is_not_used_up_by_them", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		allow := forbid(t, db, "if current_query() like '%validate%' then perform pg_sleep(60); end if;")
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if _, err := s.store.Migrate(ctx); err != nil || ctx.Err() != nil {
			t.Errorf("%v, and of the context %v", err, ctx.Err())
		}
		s.wantBounds(t, none...)
		allow()
		s.migrate(t)
		s.wantBounds(t, both...)
	})
	t.Run("a_call_that_is_cancelled_meanwhile_says_so", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		validating, over := s.validating(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := s.store.Migrate(ctx)
			ended <- err
		}()
		validating()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		over()
	})
	t.Run("trap_T104_other_processes_do_not_wait_for_a_look_at_all_rows", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		validating, over := s.validating(t)
		ended := make(chan error)
		go func() {
			_, err := s.store.Migrate(context.WithoutCancel(t.Context()))
			ended <- err
		}()
		validating()
		if !one[bool](t, db, "select pg_try_advisory_xact_lock(hashtextextended($1, 0))", s.in("in.semel_migrations")) {
			t.Error("the lock of migrations is held")
		}
		s.migrate(t)
		over()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.migrate(t)
		s.wantBounds(t, both...)
	})
}

// validating lets one validation wait until over is called; the first function it
// returns waits for it to begin.
func (s *shop) validating(t *testing.T) (begun, over func()) {
	t.Helper()
	holder, err := s.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	do := func(statement string) {
		t.Helper()
		if _, err := holder.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
			t.Fatal(err)
		}
	}
	do("select pg_advisory_lock(104)")
	allow := forbid(t, s.db, `if current_query() like '%validate%'
		and not exists (select from pg_locks where locktype = 'advisory' and objid = 104 and not granted) then
		set local lock_timeout = 0; perform pg_advisory_xact_lock_shared(104); end if;`)
	begun = func() {
		t.Helper()
		do(`do $$ begin
			for i in 1..2000 loop
				if exists (select from pg_locks where locktype = 'advisory' and objid = 104 and not granted) then return; end if;
				perform pg_sleep(0.01);
			end loop;
			raise exception 'nobody validates';
		end $$`)
	}
	return begun, func() {
		do("select pg_advisory_unlock(104)")
		allow()
		_ = holder.Close()
	}
}
