package services

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Lent lets the test cases of a suite use the same database schema, one case after the other, because a suite has a
// hundred cases, and creating a schema takes twenty times as long as emptying one.
type Lent[S any] struct {
	// Make creates a new schema.
	Make func(testing.TB) S
	// Empty deletes all rows of a schema and opens the schema again. The schema of a failed case is not used again,
	// because its content is unknown.
	Empty func(testing.TB, S) S

	idle []S
}

// Open returns an empty schema for one case.
func (l *Lent[S]) Open(t testing.TB) S {
	t.Helper()
	var s S
	t.Cleanup(func() { // registered first, so it runs after the checks that Make and Empty register
		if !t.Failed() {
			l.idle = append(l.idle, s)
		}
	})
	if last := len(l.idle) - 1; last >= 0 {
		s, l.idle = l.idle[last], l.idle[:last]
		s = l.Empty(t, s)
	} else {
		s = l.Make(t)
	}
	return s
}

// Emptying returns a statement that deletes all rows in the tables of a PostgreSQL schema, except in the tables that
// the parameter except names. The statement bypasses triggers and foreign keys.
func Emptying(schema string, except ...string) string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	for i, table := range except {
		except[i] = quote(table)
	}
	return fmt.Sprintf(`do $$ declare name text; begin
		perform pg_catalog.set_config('session_replication_role', 'replica', true);
		for name in select pg_catalog.format('%%I.%%I', schemaname, tablename) from pg_catalog.pg_tables where schemaname = %s and tablename not in (%s) loop
			execute 'delete from ' || name;
		end loop;
	end $$`, quote(schema), strings.Join(except, ", "))
}

// DueByHand makes a row due with SQL and leaves the row's marker unchanged, as a person might do.
const DueByHand = "update in.semel_inbox set state = 'RECEIVED', reason = '', token = null, locked_until = null, due_at = now() - interval '1 minute' where number = $1"

// Ahead returns a statement that moves the timestamps in a PostgreSQL schema into the future. The statement does not
// change the timestamps of markers.
func Ahead(schema string, by time.Duration) string {
	const more = "update \"%[1]s\".semel_%[2]s set "
	text := ""
	for _, of := range []struct{ table, columns string }{
		{"inbox", "received_at changed_at due_at locked_until"},
		{"generation_states", "fenced_until"}, {"generation_fences", "until"},
	} {
		var moved []string
		for _, column := range strings.Fields(of.columns) {
			moved = append(moved, fmt.Sprintf("%[1]s = %[1]s + interval '%[2]d ms'", column, by.Milliseconds()))
		}
		text += fmt.Sprintf(more+"%[3]s;\n", schema, of.table, strings.Join(moved, ", "))
	}
	return fmt.Sprintf("do $$ begin\n%s end $$", text)
}
