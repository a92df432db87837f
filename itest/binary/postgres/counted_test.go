//go:build unix

package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

const counted = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: counted.sql}}
sources: {sales: {file: {path: counted.jsonl, format: json}}}
consumers:
  stock:
    from: sales
    store: shop
    identity: {id: "body:/id"}
    handler:
      sql:
        params: {item: "body:/item"}
        statements:
          - {sql: "update stock set n = n - 1 where item = :item; -- one less", rows: 1}
          - {sql: "merge into sold s using (values (:item)) v (item) on s.item = v.item when matched then update set n = s.n + 1", rows: 1}
          - {sql: "insert into seen values (:item) /* through a rule */ ;", rows: 1}
`

func TestStatementsThatMustChangeOneRow(t *testing.T) {
	s := example(t, services.Postgres(t))
	s.write(t, "counted.yaml", counted)
	s.write(t, "counted.sql", `create table stock (item text primary key, n bigint not null); create table sold (like stock);
		insert into stock values ('apple', 5), ('pear', 5); insert into sold values ('apple', 0);
		create table really_seen (item text); create view seen as select * from really_seen;
		create rule see as on insert to seen do instead insert into really_seen values (new.item)`)
	s.write(t, "counted.jsonl", `{"id":1,"item":"apple"}
{"id":2,"item":"stone"}
{"id":3,"item":"pear"}
{"id":4,"item":"apple"}
`)
	t.Run("trap_T101_what_was_checked_is_what_is_sent", func(t *testing.T) {
		var got summary
		s.runJSON(t, &got, "run", "--config", "counted.yaml", "-o", "json")
		if counts := got.Consumers["stock"]; counts["applied"] != 2 || counts["parked"] != 2 {
			t.Errorf("%v", counts)
		}
		for _, row := range s.listParked(t, "counted.yaml") {
			if !strings.Contains(row.Reason, "condition unmet") {
				t.Errorf("%+v, want condition unmet", row)
			}
		}
		const want = "apple 3 2, pear 5 "
		if got := queryOne[string](t, s.dsn, `select string_agg(concat_ws(' ', stock.item, stock.n, coalesce(sold.n::text, '')), ', ' order by stock.item) from stock left join sold using (item)`); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if n := queryOne[int](t, s.dsn, `select count(*) from really_seen`); n != 2 {
			t.Errorf("%d were seen, want 2", n)
		}
	})
}
