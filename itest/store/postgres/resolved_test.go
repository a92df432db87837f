package postgres

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// placeholders replaces the placeholders in statements, as Semel does before it sends a statement.
var placeholders = strings.NewReplacer("{filter}", "", "{order}", "i.number", "{by}", "i.number", "{statement}", "select 1", "{busy}", " skip locked")

// unprepared lists texts that are parts of other statements, and statements that PostgreSQL cannot prepare. The listed
// statements call no operators.
var unprepared = map[string]bool{"Bounds": true, "CallEnds": true, "ClaimEnds": true, "Cutoff": true, "Due": true, "ExecOne": true, "Inbox": true, "Index": true, "IndexCauses": true,
	"IndexDue": true, "IndexLow": true, "LeaseEnds": true, "Markers": true, "Migrations": true, "Owned": true, "Part": true, "Reaper": true, "RowColumns": true, "RowEnds": true, "RowFreed": true, "SeedFirst": true, "SeedNext": true, "StreamFreed": true,
	"Unindex": true, "UnindexCauses": true, "UnindexDue": true, "UnindexLow": true, "Vacuum": true, "Writing": true,
	"AttachDay": true, "ByTime": true, "Create": true, "CreateAside": true, "CreateDay": true, "CreateReadable": true, "DropDay": true, "Fence": true, "HoldOff": true, "LockTable": true,
	"NoMoreByTime": true, "RenameDay": true, "StandIn": true, "TakeName": true}

// terminator matches the semicolon at the end of a statement and any comments after the semicolon.
var terminator = regexp.MustCompile(`;\s*(--[^\n]*\s*)*$`)

// exactOwn contains Semel's own functions.
var exactOwn = map[string]bool{"semel_expect(bigint)": true, "semel_stand(bigint,bigint)": true, "semel_day_bound(pg_catalog.text,pg_catalog.date)": true, "semel_readable(pg_catalog.bytea)": true}

// resolveObjects returns the objects that PostgreSQL chose for a statement, except built-in objects and objects of
// Semel's schema. resolveObjects reads these objects from the catalogue: PostgreSQL records the objects of a function
// whose body is the statement.
func resolveObjects(t testing.TB, db *sql.DB, statement string) (objects []string, _ error) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("deallocate all"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("prepare probed as " + statement); err != nil {
		return nil, err
	}
	var types string
	if err := tx.QueryRow("select coalesce(array_to_string(parameter_types::text[], ', '), '') from pg_prepared_statements where name = 'probed'").Scan(&types); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(fmt.Sprintf("create procedure pg_temp.probe(%s) language sql begin atomic %s\n; end", types, statement)); err != nil {
		return nil, err
	}
	rows, err := tx.Query(`select i.identity from pg_catalog.pg_depend d, pg_catalog.pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) i
		where d.classid = 'pg_proc'::regclass::oid and d.objid = (select oid from pg_catalog.pg_proc where proname = 'probe'::name order by oid desc limit 1)
		and (i.schema = '` + services.Shadows + `' or i.type = 'function')`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var object string
		if err := rows.Scan(&object); err != nil {
			t.Fatal(err)
		}
		if !exactOwn[object[max(strings.Index(object, "semel_"), 0):]] {
			objects = append(objects, object)
		}
	}
	return objects, rows.Err()
}

// resolve checks that each statement calls only built-in objects.
func resolve(t *testing.T, db *sql.DB, statements any) {
	t.Helper()
	for name, text := range sqlform.ByName(statements) {
		if text == "" {
			continue
		}
		text = terminator.ReplaceAllString(placeholders.Replace(text), "")
		objects, err := resolveObjects(t, db, text)
		if err != nil && !unprepared[name] {
			t.Errorf("%s is neither a part of others nor a statement that can be prepared: %v", name, err)
		}
		for _, o := range objects {
			t.Errorf("%s calls %s: give its operands or arguments the exact types of the built-in one", name, o)
		}
	}
}

// newShadowedFixture creates Semel's tables in a database that also has a user's functions and operators. The
// search_path of the returned store also finds the user's objects.
func newShadowedFixture(t *testing.T, dsn string) (*sql.DB, *fixture) {
	t.Helper()
	db := openDB(t, dsn, "default_query_exec_mode=exec")
	s := newFixture(t, openDB(t, strings.Split(dsn, "&search_path")[0]), sqlstore.Options{})
	services.ShadowOwn(t, dsn, s.schema)
	return db, fixtureOf(t, db, newUnmigratedStore(t, db, sqlstore.Options{Schema: s.schema}), s.schema)
}

func TestStatementsResolveToBuiltInObjects(t *testing.T) {
	dsn := newShadowedDatabase(t)
	t.Run("P4_each_statement_whatever_another_schema_has", func(t *testing.T) {
		db, s := newShadowedFixture(t, dsn)
		resolve(t, db, sqlstore.Statements(s.store, sqlform.Revision12{}))
	})
	t.Run("P4_each_statement_of_markers_by_day", func(t *testing.T) {
		for _, kind := range []identity.IDTime{identity.UUIDv7, identity.ULID, identity.Snowflake} {
			db, s := newShadowedFixture(t, dsn)
			own, err := s.store.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: kind, Back: 1})
			if err != nil {
				t.Fatal(err)
			}
			days, all := *sqlstore.DatedStatements(own, sqlform.Revision12{}), sqlstore.Statements(own, sqlform.Revision12{})
			days.Look, days.Reap = all.Look, all.Reap // without the texts that are inserted into other statements
			resolve(t, db, &days)
			s.nothingKept(t)
		}
	})
	t.Run("P4_each_statement_of_a_move_to_days", func(t *testing.T) { movesResolve(t, dsn) })
	t.Run("P4_what_seeds_from_a_table_of_ids", func(t *testing.T) {
		for _, old := range olds {
			_, s := newShadowedFixture(t, dsn)
			s.exec(t, "create table in.processed (id "+old.column+" primary key)")
			s.exec(t, "insert into in.processed values ("+old.value+")")
			if sum := s.seed(t, sqlstore.Seed{Table: "in.processed", ID: "id", Batch: 1}); sum.Written != 1 {
				t.Errorf("%s: %+v", old.column, sum)
			}
		}
	})
	t.Run("P4_each_statement_of_an_adopted_table", func(t *testing.T) {
		for _, old := range olds {
			if old.column == "char(10)" {
				continue
			}
			db, s := newShadowedFixture(t, dsn)
			s.exec(t, `create table in.processed (id `+old.column+`, consumer varchar(20), source varchar(40), state varchar(9) not null, at timestamptz not null, primary key (id, source, consumer))`)
			s.adopt(t, sqlstore.Adopted{Consumer: "billing", Table: "in.processed", ID: "id", ConsumerColumn: "consumer", SourceColumn: "source", AtColumn: "at",
				Values: map[string]string{"state": "done"}})
			resolve(t, db, sqlstore.Statements(s.store, sqlform.Revision12{}))
			for range 2 {
				s.commitDeliveries(t, old.id)
			}
			if n := queryOne[int](t, s.db, s.inSchema("select count(*) from in.processed")); n != 1 {
				t.Errorf("%s: the table has %d rows", old.column, n)
			}
		}
	})
}

// movesResolve checks the statements of a move to daily partitions while the move is in progress. After the checks,
// movesResolve ends the move.
func movesResolve(t *testing.T, dsn string) {
	db, s := newShadowedFixture(t, dsn)
	s.processAll(t, store.Applied, uuid(-1, 1), uuid(-60, 2))
	s.processAll(t, store.Parked, uuid(0, 3))
	if err := s.store.BeginMove(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: 2}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../sqlstore/postgres/moving.sql")
	if err != nil {
		t.Fatal(err)
	}
	prefix := s.inSchema("in.semel_")
	names := strings.NewReplacer("{prefix}", prefix, "{markers}", prefix+"markers_1", "{name}", "semel_markers_1", "{number}", "1", "{kind}", "uuidv7", "{list}", "{1,2}", "{date}", "20200101")
	exact, err := sqltext.Postgres().Exact(names.Replace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	texts, err := sqlform.Texts(exact)
	if err != nil {
		t.Fatal(err)
	}
	var moving sqlform.Moving
	if err := sqlform.Fill(&moving, texts); err != nil {
		t.Fatal(err)
	}
	resolve(t, db, &moving)
	s.nothingKept(t)
	if _, err := s.store.EndMove(t.Context(), "billing"); err != nil {
		t.Error(err)
	}
	s.nothingKept(t)
	s.useDailyPartitions(t, 2)
	wantVerdicts(t, s.processAll(t, store.Applied, uuid(-1, 1), uuid(-60, 2), uuid(0, 3), uuid(0, 4)), isApplied, isApplied, isParked, isFresh)
	s.setRetention(t, aDay)
	s.pass(t)
}

// nothingKept checks that no view, default, constraint or index of Semel's schema calls an object of the
// user's schema.
func (s *fixture) nothingKept(t *testing.T) {
	t.Helper()
	n := queryOne[int](t, s.db, `select count(*) from pg_catalog.pg_depend d, pg_catalog.pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) i
		where i.schema = '`+services.Shadows+`' and d.classid <> 'pg_catalog.pg_proc'::regclass::oid and d.classid <> 'pg_catalog.pg_operator'::regclass::oid`)
	if n != 0 {
		t.Errorf("%d objects of Semel's schema call functions or operators of another one", n)
	}
}
