package sqlhandler

import (
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqltext"
)

func TestParametersAreFoundOnlyInCode(t *testing.T) {
	for _, c := range []struct{ name, dialect, sql, want string }{
		{"plain", "sqlite", "update a set b = :x where c = :y", "x y"},
		{"twice is once", "sqlite", "select :x, :y, :x", "x y"},
		{"text", "sqlite", "select ':x', 'it''s :y', :z", "z"},
		{"quoted names", "sqlite", "select \":a\", `:b`, [:c], \"\"\":d\", :e", "e"},
		{"line comment", "sqlite", "select 1 -- :a\n, :b", "b"},
		{"comment to the end", "sqlite", "select :b -- :a", "b"},
		{"block comment", "sqlite", "select /* :a\n */ :b", "b"},
		{"comments do not nest on SQLite", "sqlite", "select /* /* :a */ :b", "b"},
		{"comments nest on PostgreSQL", "postgres", "select /* /* :a */ :b */ :c", "c"},
		{"cast", "postgres", "select :a::jsonb, b::text", "a"},
		{"assignment", "postgres", "select a :=b, :c", "c"},
		{"dollar body", "postgres", "select $$ :a $$, $t$ $$ :b $t$, :c", "c"},
		{"brackets are arrays on PostgreSQL", "postgres", "select a[:i]", "i"},
		{"escape text", "postgres", `select E'\':a', 'b\', :c`, "c"},
		{"no escapes on SQLite", "sqlite", `select e'\', :a`, "a"},
		{"slices of numbers", "postgres", "select a[1:2]", ""},
		{"names end where SQL ends them", "sqlite", "select :a_1+:b2,(:c)", "a_1 b2 c"},
		{"letters of any language", "sqlite", "select :größe", "größe"},
		{"numbers hold no parameter", "sqlite", "select 1e5, 0x1F", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			names, err := dialect(c.dialect).Params(c.sql)
			if got := strings.Join(names, " "); got != c.want || err != nil {
				t.Errorf("%s: parameters %q (%v), want %q", c.sql, got, err, c.want)
			}
		})
	}
}

func dialect(name string) Dialect {
	if name == "postgres" {
		return Postgres()
	}
	return SQLite()
}

func TestStatementsThatAHandlerMayNotRunAreRejected(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"begin", "BEGIN controls the transaction"},
		{"BEGIN IMMEDIATE", "BEGIN controls the transaction"},
		{"/* x */ Commit;", "COMMIT controls the transaction"},
		{"end", "END controls the transaction"},
		{"rollback to a", "ROLLBACK controls the transaction"},
		{"savepoint a", "SAVEPOINT controls the transaction"},
		{"release a", "RELEASE controls the transaction"},
		{"start transaction", "START controls the transaction"},
		{"abort", "ABORT controls the transaction"},
		{"pragma foreign_keys = on", "PRAGMA changes the connection"},
		{"attach 'x' as y", "ATTACH changes the connection"},
		{"set local x = 1", "SET changes the connection"},
		{"create table t (a)", "CREATE changes the schema"},
		{"drop table t", "DROP changes the schema"},
		{"delete from a; delete from b", "2 statements in one text"},
		{"delete from a; commit", "COMMIT controls the transaction"},
		{"", "there is no statement"},
		{" ; -- x", "there is no statement"},
		{"select 'x", "never ends"},
		{"select \"x", "never ends"},
		{"select /* x", "never ends"},
		{"delete from a where b = ?", "? is a placeholder"},
		{"delete from a where b = ?1", "?1 is a placeholder"},
		{"delete from a where b = @x", "@x is a placeholder"},
		{"delete from a where b = $x", "$x is a placeholder"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			faults := SQLite().Check(c.sql)
			if !slices.ContainsFunc(faults, func(f Fault) bool { return strings.Contains(f.Reason, c.want) }) {
				t.Errorf("%v, want one with %q", faults, c.want)
			}
			for _, f := range faults {
				if f.Remedy == "" {
					t.Errorf("%q has no remedy", f.Reason)
				}
			}
		})
	}
}

func TestUsualStatementsPass(t *testing.T) {
	for _, sql := range []string{
		"update accounts set balance = balance + :amount where id = :account",
		"insert into a (b) values ('begin; commit')",
		"insert into a (b) values (:b);",
		"insert into a values (:a) on conflict (a) do update set b = excluded.b -- ;",
		"with x as (select 1) insert into a select * from x",
		"replace into a values (:a)",
		"update a set \"commit\" = 1",
		"delete from a where case b when 1 then 2 end = :c",
		"select 1",
	} {
		if faults := SQLite().Check(sql); len(faults) > 0 {
			t.Errorf("%s: %v", sql, faults)
		}
	}
	if faults := Postgres().Check("select a ? 'b', c @> d from e where f = :f::int"); len(faults) > 0 {
		t.Errorf("operators of PostgreSQL: %v", faults)
	}
}

func TestOnlyChangesReturnANumberOfRows(t *testing.T) {
	for sql, want := range map[string]bool{
		"insert into a values (1)":                       true,
		"update a set b = 1":                             true,
		"delete from a":                                  true,
		"replace into a values (1)":                      true,
		"with x as (select 1) update a set b = 1":        true,
		"with x as (delete from a returning b) select 1": false,
		"select 1": false,
		"with \"update\" as (select 1) select * from b":     false,
		"select (select count(*) from a) -- insert, update": false,
	} {
		tokens, err := SQLite().text.Scan(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := countsRows(sqltext.Split(tokens)[0]); got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}

func FuzzScanCoversTheWholeText(f *testing.F) {
	for _, s := range []string{"select :a", "'", "$$", "$a$ $a$", "E'\\", "/*", "--", ":", "::", "\x00\xff", "[", "1e:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []Dialect{SQLite(), Postgres()} {
			tokens, err := d.text.Scan(text)
			if err != nil {
				continue
			}
			at := 0
			for _, token := range tokens {
				if token.Start != at || token.End <= at {
					t.Fatalf("token %+v begins not at %d", token, at)
				}
				at = token.End
			}
			if at != len(text) {
				t.Fatalf("%d of %d bytes", at, len(text))
			}
			d.Check(text)
			d.NotNatural(text)
		}
	})
}
