package sqlite

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func newUnmigratedStore(t testing.TB, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.SQLite(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMigrations(t *testing.T) {
	t.Run("a_missing_schema_is_named_with_its_command", func(t *testing.T) {
		s := newUnmigratedStore(t, openFile(t, newFile(t), pragmas), sqlstore.Options{})
		sqlsuite.Refused(t, s.Check(t.Context()), "semel migrate up")
		_, err := s.Scope(t.Context(), "c", "", 0)
		isDown(t, s, err, "semel migrate up")
		_, _, err = s.Begin(t.Context(), store.TxOptions{}, nil)
		isDown(t, s, err, "semel migrate up")
	})
	t.Run("migrations_are_applied_once", func(t *testing.T) {
		s := newUnmigratedStore(t, openFile(t, newFile(t), pragmas), sqlstore.Options{})
		applied, err := s.Migrate(t.Context())
		if err != nil || !slices.Equal(applied, []string{"0001_first"}) {
			t.Errorf("applied %v, %v", applied, err)
		}
		if again, err := s.Migrate(t.Context()); err != nil || len(again) != 0 {
			t.Errorf("applied again: %v, %v", again, err)
		}
		status, err := s.Status(t.Context())
		if err != nil || len(status) != 1 || status[0].AppliedAt.IsZero() || status[0].Checksum == "" {
			t.Errorf("the status is %+v, %v", status, err)
		}
	})
	t.Run("several_processes_may_migrate_at_once", func(t *testing.T) {
		path := newFile(t)
		exec(t, openFile(t, path, pragmas), "create table mine (id)")
		var stores []sqlsuite.Migrator
		for range 5 {
			stores = append(stores, newUnmigratedStore(t, openFile(t, path, pragmas), sqlstore.Options{}))
		}
		all := sqlsuite.MigrateTogether(t, stores)
		if len(all) != 1 {
			t.Errorf("applied %v, want each once", all)
		}
	})
}

func TestSchemasThatDoNotFit(t *testing.T) {
	t.Run("a_newer_schema_is_refused_with_the_remedy", func(t *testing.T) {
		s, db := newMigratedStore(t, sqlstore.Options{})
		exec(t, db, "insert into semel_migrations values (1099, 'later', 'x', 1)")
		sqlsuite.Refused(t, s.Check(t.Context()), "newer release")
		_, err := s.Migrate(t.Context())
		sqlsuite.Refused(t, err, "1099_later")
	})
	t.Run("P1_a_migration_that_a_newer_release_added_is_accepted_and_listed", func(t *testing.T) {
		s, db := newMigratedStore(t, sqlstore.Options{})
		exec(t, db, "insert into semel_migrations values (99, 'later', 'x', 1)")
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if applied, err := s.Migrate(t.Context()); err != nil || len(applied) > 0 {
			t.Errorf("applied %v, %v", applied, err)
		}
		status, err := s.Status(t.Context())
		if err != nil || len(status) != 2 || status[1].String() != "0099_later" || status[1].SQL != "" {
			t.Errorf("the status is %+v, %v", status, err)
		}
	})
	t.Run("a_migration_that_was_edited_is_refused", func(t *testing.T) {
		s, db := newMigratedStore(t, sqlstore.Options{})
		exec(t, db, "update semel_migrations set checksum = 'x'")
		sqlsuite.Refused(t, s.Check(t.Context()), "another content")
	})
}

func TestSchemasMadeByHand(t *testing.T) {
	t.Run("what_print_writes_makes_the_schema", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		s := newUnmigratedStore(t, db, sqlstore.Options{Prefix: "mine_"})
		sqlsuite.MadeByHand(t, s, func(text string) { exec(t, db, text) })
	})
	t.Run("two_prefixes_are_two_stores", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		for _, prefix := range []string{"a_", "b_"} {
			s := newUnmigratedStore(t, db, sqlstore.Options{Prefix: prefix})
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			sqlsuite.Works(t, instanceOn(t, s, db), makeMarks(t, s, prefix))
		}
		var strays int
		if err := db.QueryRow("select count(*) from sqlite_master where name like 'semel%'").Scan(&strays); err != nil || strays != 0 {
			t.Errorf("%d tables carry the default prefix, %v", strays, err)
		}
	})
}

func newMigratedStore(t testing.TB, o sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := openFile(t, newFile(t), pragmas+foreignKeys)
	s := newUnmigratedStore(t, db, o)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db
}

func TestTheSchemaIsLookedAtAtStart(t *testing.T) {
	t.Run("trap_T20_a_schema_without_its_unique_keys_is_refused", func(t *testing.T) {
		for says, statements := range map[string]string{
			"semel_markers has no primary key": `drop view semel_markers_readable; alter table semel_markers rename to old;
				create table semel_markers (scope integer, id blob, outcome integer, version integer, sum blob, long_id blob, at integer)`,
			"semel_inbox has no unique key": `create table copy as select * from semel_inbox; drop table semel_inbox;
				alter table copy rename to semel_inbox`,
			"semel_acts can be changed": "drop trigger semel_acts_remain",
		} {
			s, db := newMigratedStore(t, sqlstore.Options{})
			exec(t, db, statements)
			sqlsuite.Refused(t, s.Check(t.Context()), says)
		}
	})
	t.Run("acts_cannot_be_changed_or_deleted", func(t *testing.T) {
		_, db := newMigratedStore(t, sqlstore.Options{})
		exec(t, db, "insert into semel_acts (row, verb, who, why, result, at) values (1, 'discard', 'ana', '', 'done', 1)")
		for _, statement := range []string{"update semel_acts set who = 'bob'", "delete from semel_acts"} {
			if _, err := db.Exec(statement); err == nil {
				t.Errorf("%s is allowed", statement)
			}
		}
	})
}

func TestMarkersCanBeRead(t *testing.T) {
	s, db := newMigratedStore(t, sqlstore.Options{})
	i := instanceOn(t, s, db)
	want := []string{"0190a5e2-7d0b-7c3e-8f00-0123456789ab", strings.Repeat("long", 200), "plain"}
	if _, _, err := sqlsuite.Attempt(t, i, makeMarks(t, s, want...)); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("select consumer, id, outcome from semel_markers_readable order by id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		var consumer, id, outcome string
		if err := rows.Scan(&consumer, &id, &outcome); err != nil {
			t.Fatal(err)
		}
		if consumer != "billing" || id != want[n] || outcome != "applied" {
			t.Errorf("row %d reads %q, %.40q, %q", n, consumer, id, outcome)
		}
	}
}

func TestSetup(t *testing.T) {
	s, db := newMigratedStore(t, sqlstore.Options{})
	t.Run("the_users_statements_run_once", func(t *testing.T) {
		text := "create table accounts (id integer primary key, balance integer); insert into accounts values (1, 10); -- the end"
		for _, want := range []bool{true, false} {
			if ran, err := s.Setup(t.Context(), "setup.sql", text); err != nil || ran != want {
				t.Errorf("ran: %t, %v, want %t", ran, err, want)
			}
		}
		var rows int
		if err := db.QueryRow("select count(*) from accounts").Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%d rows, %v", rows, err)
		}
	})
	t.Run("a_setup_that_fails_leaves_nothing_and_may_be_mended", func(t *testing.T) {
		ran, err := s.Setup(t.Context(), "more.sql", "create table more (id); insert into missing values (1)")
		if ran || err == nil || !strings.Contains(err.Error(), "more.sql") {
			t.Errorf("ran: %t, %v", ran, err)
		}
		if ran, err := s.Setup(t.Context(), "more.sql", "create table more (id)"); !ran || err != nil {
			t.Errorf("ran: %t, %v", ran, err)
		}
	})
	t.Run("trap_T103_a_set_up_that_would_end_its_transaction_is_refused_with_the_place", func(t *testing.T) {
		for text, place := range map[string]string{
			"create table half (id);\ncommit; create table other (id)":     "line 2, column 1: COMMIT",
			"create table half (id); rollback; create table half (id)":     "line 1, column 25: ROLLBACK",
			"begin; create table half (id); end":                           "line 1, column 1: BEGIN",
			"create table half (id);\ufeffcommit; create table other (id)": "does not begin a statement",
		} {
			ran, err := s.Setup(t.Context(), "half.sql", text)
			if ran || err == nil || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "nothing of it ran") {
				t.Errorf("%+q: ran %t, %v, want %q", text, ran, err, place)
			}
			var left int
			if err := db.QueryRow("select count(*) from sqlite_master where name in ('half', 'other')").Scan(&left); err != nil || left != 0 {
				t.Errorf("%+q: %d tables are left, %v", text, left, err)
			}
		}
	})
	t.Run("the_body_of_a_trigger_may_end", func(t *testing.T) {
		text := "create table logged (id); create trigger keep after insert on logged begin update logged set id = case id when 1 then 2 else id end; delete from logged where id = 2; end;"
		if ran, err := s.Setup(t.Context(), "trigger.sql", text); !ran || err != nil {
			t.Errorf("ran %t, %v", ran, err)
		}
	})
}
