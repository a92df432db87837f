package sqlhandler

import (
	"slices"
	"strings"
	"testing"
)

func wantFault(t *testing.T, d Dialect, text, reason string) {
	t.Helper()
	faults := d.Check(text)
	if !slices.ContainsFunc(faults, func(f Fault) bool { return strings.Contains(f.Reason, reason) && f.Remedy != "" }) {
		t.Errorf("%+q: %v, want one with %q and a remedy", text, faults, reason)
	}
}

func TestStatementsThatOutliveATransactionAreRejected(t *testing.T) {
	d := Postgres().Tables("public", "semel_")
	for text, reason := range map[string]string{
		"copy a from stdin":                                      "COPY reads or writes",
		"COPY (select 1) to program 'x'":                         "COPY reads or writes",
		"select * into temp t from a":                            "SELECT … INTO creates a table",
		"with x as (select 1) select * into t from x":            "SELECT … INTO creates a table",
		"(select 1 as q into zz)":                                "SELECT … INTO creates a table",
		"((select 1 as q into zz))":                              "SELECT … INTO creates a table",
		"with a as (select 1) (select 1 as q into zz)":           "SELECT … INTO creates a table",
		"(with a as (select 1) select 1 as q into zz)":           "SELECT … INTO creates a table",
		"select a, insert into zz from b":                        "SELECT … INTO creates a table",
		"do $$ begin null; end $$":                               "DO runs code that cannot be checked",
		"do language plpgsql 'begin commit; end'":                "DO runs code that cannot be checked",
		"select 1\x00; commit":                                   "character 9 is NUL",
		"select U&\"set\\005fconfig\"('a.b', :x, true)":          "writes a name with code points",
		"update pg_settings set setting = :x where name = 'a.b'": "update of pg_settings",
		"update only (pg_catalog.pg_settings) set setting = :x":  "update of pg_settings",
		"lock table a":                                           "LOCK blocks other users",
		"set role x":                                             "SET changes the connection",
		"discard all":                                            "DISCARD changes the connection",
		"reset all":                                              "RESET changes the connection",
		"load 'x'":                                               "LOAD changes the connection",
		"vacuum":                                                 "VACUUM changes the schema",
		"explain analyze delete from a":                          "EXPLAIN is not a statement",
		"select pg_advisory_lock(1)":                             "a lock of the session",
		"select PG_TRY_ADVISORY_LOCK_SHARED(1)":                  "a lock of the session",
		"select pg_catalog.pg_advisory_unlock_all()":             "a lock of the session",
		"select \"pg_advisory_lock\" (1)":                        "a lock of the session",
	} {
		wantFault(t, d, text, reason)
	}
	for _, text := range []string{
		"select pg_advisory_xact_lock(:x)", "insert into mine (a) select id from semel_markers_readable",
		"insert into other.semel_markers values (1)", "update semel_accounts set a = 1", "merge into a using b on true when matched then update set c = 1",
		"insert into a values (1) on conflict (b) do update set c = 1", "(select 1)", "call f(:x)",
		"notify a, 'b'", "with x as (insert into a values (1) returning b) insert into c select * from x",
		"select q.into from (select 1 as into) q", "insert into a select (select setting from pg_settings limit 1)", "select u & \"x\", u&'\\0061' from a",
		"select replace(a, 'b', 'c'), \"into\" from d", "table a", "values (1)", "select (select 1), 'copy'",
	} {
		if faults := d.Check(text); len(faults) > 0 {
			t.Errorf("%s: %v", text, faults)
		}
	}
}

func TestBlanksOfOtherAlphabets(t *testing.T) {
	t.Run("trap_T100_no_blank_hides_the_first_word", func(t *testing.T) {
		for _, blank := range []string{"\u3000", "\u00a0", "\u0085", "\u2003", "\ufeff", "\u200b"} {
			for _, d := range []Dialect{SQLite(), Postgres()} {
				for _, text := range []string{blank + "rollback", " " + blank + " commit", "/* x */" + blank + "rollback"} {
					wantFault(t, d, text, "does not begin like a statement")
				}
			}
		}
	})
	t.Run("trap_T100_what_is_sent_is_what_was_read", func(t *testing.T) {
		h, err := Compile(SQLite(), Config{Statements: []Statement{{SQL: "\n-- x\ndelete from a where b = '\u3000' ; -- y\n"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.statements[0].text; got != "delete from a where b = '\u3000'" {
			t.Errorf("the sent text is %q", got)
		}
	})
}

func TestWhichStatementsTheServerCanCheck(t *testing.T) {
	one := int64(1)
	t.Run("trap_T101_a_merge_is_judged_by_its_answer", func(t *testing.T) {
		for text, want := range map[string]bool{
			"update a set b = 1; -- x": true, "merge into a using b on true when matched then delete": false,
			"update a set b = 1 returning b": false, "with x as (select 1) update a set b = 1": false,
		} {
			h, err := Compile(Postgres(), Config{Statements: []Statement{{SQL: text, Rows: &one}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := h.statements[0].isServerChecked(); got != want {
				t.Errorf("%s: the server judges: %t, want %t", text, got, want)
			}
		}
	})
}
