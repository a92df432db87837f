package postgres

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

// placeholders are what Semel fills in before it sends a statement.
var placeholders = strings.NewReplacer("{filter}", "", "{order}", "i.number", "{by}", "i.number", "{statement}", "select 1")

// unprepared are parts of other statements, and what PostgreSQL does not prepare: it calls no
// operators.
var unprepared = map[string]bool{"Bounds": true, "CallEnds": true, "ClaimEnds": true, "Cutoff": true, "Due": true, "ExecOne": true, "Inbox": true, "Index": true, "IndexCauses": true,
	"IndexDue": true, "IndexLow": true, "LeaseEnds": true, "Markers": true, "Migrations": true, "Owned": true, "Part": true, "Reaper": true, "RowColumns": true, "RowEnds": true, "RowFreed": true, "SeedFirst": true, "SeedNext": true, "StreamFreed": true,
	"Unindex": true, "UnindexCauses": true, "UnindexDue": true, "UnindexLow": true, "Vacuum": true, "Writing": true}

// behind is what stands behind a statement in its file.
var behind = regexp.MustCompile(`;\s*(--[^\n]*\s*)*$`)

// exactOwn are Semel's functions.
var exactOwn = map[string]bool{"semel_expect(bigint)": true, "semel_stand(bigint,bigint)": true, "semel_day_bound(pg_catalog.text,pg_catalog.date)": true, "semel_readable(bytea)": true}

// resolved are the objects outside of Semel's schema and the built-in ones that PostgreSQL
// chose for a statement: it records them for a function whose body the statement is.
func resolved(t testing.TB, db *sql.DB, statement string) (objects []string, _ error) {
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

func TestStatementsResolveToBuiltInObjects(t *testing.T) {
	t.Run("P4_each_statement_whatever_another_schema_has", statementsResolve)
}

func statementsResolve(t *testing.T) {
	dsn := shadowed(t)
	db := openDB(t, dsn, "default_query_exec_mode=exec")
	s := newShop(t, openDB(t, strings.Split(dsn, "&search_path")[0]), sqlstore.Options{})
	services.ShadowOwn(t, dsn, s.schema)
	own := bare(t, db, sqlstore.Options{Schema: s.schema})
	for name, text := range sqlform.ByName(sqlstore.Statements(own, sqlform.Revision12{})) {
		text = behind.ReplaceAllString(placeholders.Replace(text), "")
		objects, err := resolved(t, db, text)
		if err != nil && !unprepared[name] {
			t.Errorf("%s is neither a part of others nor a statement that can be prepared: %v", name, err)
		}
		for _, o := range objects {
			t.Errorf("%s calls %s: give its operands or arguments the exact types of the built-in one", name, o)
		}
	}
}
