package postgres

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

const writeUnknown = "insert into in.semel_markers (scope, at, outcome, version, id) values (1, now(), 6, 0, '\\x0062')"

// bounds are the constraints of known outcomes and states, and which of them
// were held against the rows that were there.
func (s *shop) bounds(t *testing.T) (names []string) {
	t.Helper()
	rows, err := s.db.Query(s.in(`select conname || case when convalidated then '' else ' not valid' end
		from pg_constraint where conrelid in ('in.semel_markers'::regclass, 'in.semel_inbox'::regclass) and contype = 'c' order by 1`))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func (s *shop) wantBounds(t *testing.T, want ...string) {
	t.Helper()
	if got := s.bounds(t); !slices.Equal(got, want) {
		t.Errorf("the constraints are %q, want %q", got, want)
	}
}

func (s *shop) migrate(t *testing.T) {
	t.Helper()
	if ran, err := s.store.Migrate(t.Context()); err != nil || len(ran) != 0 {
		t.Errorf("migrated %v, %v", ran, err)
	}
}

// unbound makes the tables those of a release before.
func (s *shop) unbound(t *testing.T) {
	s.exec(t, "alter table in.semel_markers drop constraint known_outcomes")
	s.exec(t, "alter table in.semel_inbox drop constraint known_states")
}

func TestUnknownOutcomesAndStatesAreKeptOut(t *testing.T) {
	dsn := services.Postgres(t)
	db := openDB(t, dsn)
	t.Run("trap_T104_by_constraints_from_the_start", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.wantBounds(t, "known_outcomes", "known_states")
		if _, err := db.Exec(s.in(writeUnknown)); err == nil || !strings.Contains(err.Error(), "23514") {
			t.Errorf("an unknown outcome is written: %v", err)
		}
	})
	t.Run("trap_T104_and_by_the_next_migration_of_older_tables", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		s.migrate(t)
		s.wantBounds(t, "known_outcomes", "known_states")
	})
	t.Run("trap_T104_rows_of_a_newer_release_stay_and_no_more_come", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		s.exec(t, writeUnknown)
		s.migrate(t)
		s.wantBounds(t, "known_outcomes not valid", "known_states")
		if _, err := db.Exec(s.in(strings.ReplaceAll(writeUnknown, "0062", "0063"))); err == nil {
			t.Error("another is written")
		}
		s.exec(t, "delete from in.semel_markers")
		s.migrate(t)
		s.wantBounds(t, "known_outcomes", "known_states")
	})
	t.Run("trap_T80_a_table_in_use_is_left_alone", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		reader, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reader.Rollback() }()
		if _, err := reader.Exec(s.in("lock table in.semel_markers in access share mode")); err != nil {
			t.Fatal(err)
		}
		s.migrate(t)
		s.wantBounds(t, "known_states")
		if err := reader.Rollback(); err != nil {
			t.Fatal(err)
		}
		s.migrate(t)
		s.wantBounds(t, "known_outcomes", "known_states")
	})
	t.Run("trap_T80_whoever_does_not_own_the_tables_changes_none", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		s.exec(t, `do $$ begin create role semel_bounds_reader; exception when duplicate_object then null; end $$`)
		s.exec(t, `grant usage on schema "`+s.schema+`" to semel_bounds_reader`)
		s.exec(t, `grant select on all tables in schema "`+s.schema+`" to semel_bounds_reader`)
		other := openDB(t, dsn, "options=-crole%3Dsemel_bounds_reader")
		s.store = mustStore(t, other, sqlstore.Options{Schema: s.schema})
		s.migrate(t)
		s.store = mustStore(t, db, sqlstore.Options{Schema: s.schema})
		s.wantBounds(t)
	})
	t.Run("several_processes_may_add_them_at_once", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		s.unbound(t)
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := s.store.Migrate(context.WithoutCancel(t.Context()))
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		s.migrate(t)
		s.wantBounds(t, "known_outcomes", "known_states")
	})
}

func mustStore(t *testing.T, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Postgres(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
