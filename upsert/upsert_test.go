package upsert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/upsert"
)

var index = upsert.Newer{Table: "shop.articles", Key: []string{"shop", "id"}, Set: []string{"title", `a "b"`}, Version: "order"}

func ExampleNewer() {
	text, err := upsert.Newer{Table: "search_index", Key: []string{"article"}, Set: []string{"title"}, Version: "version"}.PostgreSQL()
	if err != nil {
		panic(err)
	}
	fmt.Println(text)
	// Output:
	// insert into "search_index" as present ("article", "title", "version") values ($1, $2, $3)
	// on conflict ("article") do update set "title" = excluded."title", "version" = excluded."version"
	// where present."version" is null or present."version" < excluded."version"
}

func TestTheStatementOfADialect(t *testing.T) {
	const rest = ` on conflict ("shop", "id") do update set "title" = excluded."title", "a ""b""" = excluded."a ""b""", "order" = excluded."order" where present."order" is null or `
	const numbers = `present."order" < excluded."order"`
	const any = `(typeof(present."order") in ('integer', 'real'), present."order") < (typeof(excluded."order") in ('integer', 'real'), excluded."order")`
	const head = `insert into "shop"."articles" as present ("shop", "id", "title", "a ""b""", "order") values `
	for name, c := range map[string]struct {
		text          func() (string, error)
		values, older string
	}{
		"B5_PostgreSQL_numbers_its_parameters": {index.PostgreSQL, "($1, $2, $3, $4, $5)", numbers},
		"B5_SQLite_numbers_them_its_own_way":   {index.SQLite, "(?1, ?2, ?3, ?4, ?5)", any},
		"B5_a_policy_names_them":               {index.Named, `(:shop, :id, :title, :a "b", :order)`, numbers},
		"B5_a_policy_names_those_of_SQLite":    {index.NamedSQLite, `(:shop, :id, :title, :a "b", :order)`, any},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.text()
			if want := head + c.values + rest + c.older; err != nil || strings.ReplaceAll(got, "\n", " ") != want {
				t.Errorf("%v\n%s\n%s", err, got, want)
			}
		})
	}
}

func TestInvalidStatements(t *testing.T) {
	for name, c := range map[string]struct {
		n    upsert.Newer
		want string
	}{
		"B5_no_key":              {upsert.Newer{Table: "t", Version: "v"}, "Key is empty"},
		"B5_no_version":          {upsert.Newer{Table: "t", Key: []string{"k"}}, "Version is empty"},
		"B5_no_table":            {upsert.Newer{Key: []string{"k"}, Version: "v"}, `Table is ""`},
		"B5_half_a_table":        {upsert.Newer{Table: "s.", Key: []string{"k"}, Version: "v"}, `Table is "s."`},
		"B5_a_column_twice":      {upsert.Newer{Table: "t", Key: []string{"k"}, Set: []string{"v"}, Version: "v"}, `the column "v" stands there twice`},
		"B5_a_column_of_no_name": {upsert.Newer{Table: "t", Key: []string{""}, Version: "v"}, `"" is no column`},
		"B5_a_NUL":               {upsert.Newer{Table: "t", Key: []string{"a\x00"}, Version: "v"}, `is no column`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.n.SQLite(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want %s", err, c.want)
			}
		})
	}
}
