package postgres

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestMigrations(t *testing.T) {
	db := newDatabase(t)
	t.Run("a_missing_schema_is_named_with_its_command", func(t *testing.T) {
		s := newUnmigratedStore(t, db, sqlstore.Options{Schema: "nowhere"})
		sqlsuite.Refused(t, s.Check(t.Context()), "0001_first")
		_, _, err := s.Begin(t.Context(), store.TxOptions{}, nil)
		if c := s.Classify(err); c != store.ClassDown || !strings.Contains(err.Error(), "semel migrate up") {
			t.Errorf("%v is of class %v, want down with the command", err, c)
		}
	})
	t.Run("several_processes_may_migrate_at_once_and_each_migration_is_applied_once", func(t *testing.T) {
		var stores []sqlsuite.Migrator
		for range 8 {
			stores = append(stores, newUnmigratedStore(t, db, sqlstore.Options{Schema: "together"}))
		}
		all := sqlsuite.MigrateTogether(t, stores)
		slices.Sort(all)
		if n := len(all); n == 0 || n != len(slices.Compact(all)) {
			t.Errorf("applied %v, want each once", all)
		}
	})
	t.Run("a_newer_or_edited_schema_is_refused_with_the_remedy", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, "insert into in.semel_migrations values (99, 'later', 'x', now())")
		if err := s.store.Check(t.Context()); err != nil {
			t.Errorf("beside what a newer release added: %v", err)
		}
		s.exec(t, "insert into in.semel_migrations values (1099, 'anew', 'x', now())")
		sqlsuite.Refused(t, s.store.Check(t.Context()), "newer release")
		s.exec(t, "update in.semel_migrations set checksum = 'x' where version = 1")
		sqlsuite.Refused(t, s.store.Check(t.Context()), "another content")
	})
}

func TestADatabaseOfAnotherEncoding(t *testing.T) {
	t.Run("is_refused_before_anything_is_made_in_it", func(t *testing.T) {
		dsn := services.Postgres(t)
		services.Exec(t, dsn, "create database latin_shop encoding 'LATIN1' locale 'C' template template0")
		t.Cleanup(func() { services.Exec(t, dsn, "drop database latin_shop with (force)") })
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/latin_shop"
		db := openDB(t, u.String())
		applied, err := newUnmigratedStore(t, db, sqlstore.Options{}).Migrate(t.Context())
		sqlsuite.Refused(t, err, "LATIN1, not as UTF8")
		if len(applied) > 0 || queryOne[int](t, db, "select count(*) from pg_class where relname like 'semel%'") > 0 {
			t.Errorf("it was migrated: %v", applied)
		}
	})
}

func TestPrintedMigrations(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T80_what_print_writes_makes_the_schema_and_rewrites_no_table", func(t *testing.T) {
		s := newUnmigratedStore(t, db, sqlstore.Options{Schema: `by hand`, Prefix: "mine_"})
		text := sqlsuite.MadeByHand(t, s, func(text string) { exec(t, db, text) })
		for statement := range strings.SplitSeq(strings.ToLower(text), ";\n") {
			for _, rewrites := range []string{"alter column", "add constraint", "add check", "cluster", "vacuum full"} {
				// a constraint that is "not valid" does not check existing rows
				looks := !strings.HasPrefix(rewrites, "add ") || !strings.HasSuffix(statement, " not valid")
				if looks && strings.Contains(statement, rewrites) {
					t.Errorf("a migration says %q: it locks a table that is in use", rewrites)
				}
			}
		}
	})
	t.Run("two_prefixes_and_two_schemas_are_four_stores", func(t *testing.T) {
		for _, o := range []sqlstore.Options{{}, {Prefix: "b_"}, {Schema: "two"}, {Schema: "two", Prefix: "b_"}} {
			s := newMigratedStore(t, db, o)
			scope, err := s.Scope(t.Context(), "c", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			b, v, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("a"), As: store.Applied}})
			if err != nil || v[0].Kind != store.Fresh {
				t.Fatal(v, err)
			}
			if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
				t.Error(r)
			}
		}
	})
}

func TestTheSchemaIsLookedAtAtStart(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T20_a_schema_without_what_once_only_stands_on_is_refused", func(t *testing.T) {
		for says, statement := range map[string]string{
			"semel_markers has no primary key":     "alter table in.semel_markers drop constraint semel_markers_pkey",
			"semel_inbox has no unique key":        "alter table in.semel_inbox drop constraint semel_inbox_scope_id_conflict_key",
			"semel_guard has no deferred":          "alter table in.semel_guard drop constraint semel_guard_number_fkey",
			"can be changed: a trigger is missing": "drop trigger semel_acts_stay on in.semel_acts",
			"can be changed: a trigger is off":     "alter table in.semel_acts disable trigger semel_acts_stay",
		} {
			s := newFixture(t, db, sqlstore.Options{})
			s.exec(t, statement)
			sqlsuite.Refused(t, s.store.Check(t.Context()), says)
		}
	})
	t.Run("acts_cannot_be_changed_deleted_or_truncated", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, `insert into in.semel_acts ("row", verb, who, why, result, at) values (1, 'discard', 'ana', '', 'done', now())`)
		for _, statement := range []string{"update in.semel_acts set who = 'bob'", "delete from in.semel_acts", "truncate in.semel_acts"} {
			if _, err := db.Exec(s.inSchema(statement)); err == nil {
				t.Errorf("%s is allowed", statement)
			}
		}
	})
	t.Run("trap_113_every_number_that_grows_is_a_bigint", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		narrow := queryOne[string](t, db, `select coalesce(string_agg(table_name || '.' || column_name, ' '), '') from information_schema.columns
			where table_schema = $1 and table_name like 'semel%' and data_type in ('integer', 'smallint', 'real')
			and column_name not in ('version', 'outcome', 'partition', 'fingerprint_version', 'ended', 'state')`, s.schema)
		if narrow != "" {
			t.Errorf("narrow: %s", narrow)
		}
	})
}

func TestMarkersCanBeRead(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	want := []string{"0190a5e2-7d0b-7c3e-8f00-0123456789ab", `\377\000x`, "größe", strings.Repeat("long", 200)}
	if r, err := s.attempt(t, s.makeMarks(t, want[0], "\xff\x00x", want[2], want[3])); err != nil || r.Outcome != store.Committed {
		t.Fatal(r, err)
	}
	rows, err := s.db.Query(s.inSchema(`select consumer, id, outcome from in.semel_markers_readable order by id collate "C"`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for ; rows.Next(); n++ {
		var consumer, id, outcome string
		if err := rows.Scan(&consumer, &id, &outcome); err != nil {
			t.Fatal(err)
		}
		if consumer != "billing" || id != want[n] || outcome != "applied" {
			t.Errorf("row %d reads %q, %.40q, %q", n, consumer, id, outcome)
		}
	}
	if err := rows.Err(); err != nil || n != len(want) {
		t.Errorf("%d rows, %v", n, err)
	}
}

// worker creates a role that may read and write rows, and opens a database with this role.
func worker(t testing.TB, dsn, grants string) *sql.DB {
	t.Helper()
	role := fmt.Sprintf("semel_worker_%d", schemas.Add(1))
	services.Exec(t, dsn, "drop role if exists "+role, "create role "+role+" login")
	t.Cleanup(func() { services.Exec(t, dsn, "drop owned by "+role, "drop role "+role) })
	services.Exec(t, dsn, strings.ReplaceAll(grants, "worker", role))
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return openDB(t, u.String())
}

func TestARoleThatCannotCreate(t *testing.T) {
	dsn := services.Postgres(t)
	owner := newFixture(t, openDB(t, dsn), sqlstore.Options{})
	db := worker(t, dsn, fmt.Sprintf(
		`grant usage on schema %[1]q to worker; grant select, insert, update, delete on all tables in schema %[1]q to worker`, owner.schema))
	s := *owner
	s.db, s.store = db, newUnmigratedStore(t, db, sqlstore.Options{Schema: owner.schema})
	s.Store = s.store
	t.Run("everything_but_migrating_works", func(t *testing.T) {
		if err := s.store.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if applied, err := s.store.Migrate(t.Context()); err != nil || len(applied) != 0 {
			t.Errorf("a complete schema was migrated: %v, %v", applied, err)
		}
		marks := s.makeMarks(t, "a", "b")
		b, _ := s.begin(t, store.TxOptions{Serial: true}, marks)
		rows := []store.Row{{Mark: 0, State: store.StateParked, Message: &semel.Message{Body: []byte("x")}}}
		if r := b.Commit(t.Context(), store.Ending{Trim: []int{1}, Rows: rows}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		s.expectWorks(t, marks[1:])
		found, err := s.store.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := errors.Join(s.store.Discard(t.Context(), store.Act{Verb: "discard", Who: "ana"}, found[0].Seen())...); err != nil {
			t.Error(err)
		}
		if err := s.store.SavePosition(t.Context(), "c", "l", source.Position{Offset: 1}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a_missing_migration_is_named_and_nothing_is_created", func(t *testing.T) {
		bare := newUnmigratedStore(t, db, sqlstore.Options{Schema: owner.schema, Prefix: "other_"})
		sqlsuite.Refused(t, bare.Check(t.Context()), "0001_first")
		_, err := bare.Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), "grant") {
			t.Errorf("got %v, want a refusal that says what to grant", err)
		}
	})
	t.Run("a_right_that_is_missing_is_the_stores_failure_with_its_remedy", func(t *testing.T) {
		services.Exec(t, dsn, fmt.Sprintf("revoke insert on all tables in schema %q from %s", owner.schema, queryOne[string](t, db, "select current_user")))
		_, _, err := s.store.Begin(t.Context(), store.TxOptions{}, s.makeMarks(t, "c"))
		s.expectError(t, err, store.ClassDown, "grant the role")
	})
}

func TestSetup(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	text := s.inSchema("create table in.mine (id int primary key); insert into in.mine values (1); -- the end")
	for _, want := range []bool{true, false} {
		if ran, err := s.store.Setup(t.Context(), "setup.sql", text); err != nil || ran != want {
			t.Errorf("ran: %t, %v, want %t", ran, err, want)
		}
	}
	t.Run("a_setup_that_fails_leaves_nothing", func(t *testing.T) {
		ran, err := s.store.Setup(t.Context(), "more.sql", s.inSchema("create table in.more (id int); insert into in.missing values (1)"))
		if ran || err == nil || !strings.Contains(err.Error(), "more.sql") {
			t.Errorf("ran: %t, %v", ran, err)
		}
		if queryOne[bool](t, s.db, "select to_regclass($1) is not null", s.inSchema("in.more")) {
			t.Error("a table is left")
		}
	})
}
