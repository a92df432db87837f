//go:build unix

package postgres

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

const orders = `version: 1
stores:
  shop:
    postgres: {url: "${DATABASE_URL}", schema: "Once only", prefix: once_}
    migrate: true
    setup: orders.sql
sources:
  orders: {file: {path: orders.jsonl, format: json}}
consumers:
  orders:
    from: orders
    store: shop
    strategy: {marker: true, business_key: {constraint: orders_number_key}}
    identity: {id: "body:/id"}
    handler:
      sql:
        params: {number: "body:/number", total: "body:/total", gift: "body:/gift?", whole: "body:"}
        statements: ["insert into orders (number, total, gift, whole) values (:number, :total, :gift, :whole)"]
`

const ordersSetup = `create table orders (number text unique, total numeric not null, gift boolean, whole jsonb not null,
    constraint small check (total < 1e30));`

func TestABusinessKeyInPostgreSQLIsAConstraintByItsName(t *testing.T) {
	s := example(t, services.Postgres(t))
	s.write(t, "orders.yaml", orders)
	s.write(t, "orders.sql", ordersSetup)
	s.write(t, "orders.jsonl", `{"id":"a","number":17,"total":12345678901234567890.10,"gift":true}
{"id":"b","number":"17","total":2}
{"id":"c","number":"18","total":1e31}
{"id":"d","number":"x","total":-0.1}
`)
	var got summary
	s.runJSON(t, &got, "run", "--config", "orders.yaml", "-o", "json")
	counts := got.Consumers["orders"]
	if counts["applied"] != 2 || counts["duplicates"] != 1 || counts["parked"] != 1 {
		t.Errorf("%v", counts)
	}
	if parked := s.listParked(t, "orders.yaml"); len(parked) != 1 || parked[0].ID != "c" {
		t.Errorf("%+v", parked)
	}
	t.Run("values_keep_every_digit_and_fit_their_columns", func(t *testing.T) {
		const want = "17 12345678901234567890.1 true a, x -0.1  d"
		if got := queryOne[string](t, s.dsn, `select string_agg(concat_ws(' ', number, trim_scale(total), coalesce(gift::text, ''), whole->>'id'), ', ' order by number) from orders`); got != want {
			t.Errorf("%s", got)
		}
	})
	t.Run("the_tables_stand_in_their_schema_under_their_prefix", func(t *testing.T) {
		if n := queryOne[int](t, s.dsn, `select count(*) from "Once only".once_markers`); n == 0 {
			t.Error("no markers")
		}
		if n := queryOne[int](t, s.dsn, `select count(*) from pg_class where relname like '%markers' and relnamespace = 'public'::regnamespace`); n != 0 {
			t.Error("tables in public")
		}
	})
}

func TestABusinessKeyThatIsNotThere(t *testing.T) {
	s := example(t, services.Postgres(t))
	s.write(t, "orders.sql", ordersSetup+" alter table orders add constraint apart exclude using btree (total with =); create unique index lower_key on orders (lower(number));")
	s.write(t, "orders.jsonl", `{"id":"a","number":17,"total":1}`+"\n")
	t.Run("is_refused_at_start_with_its_line", func(t *testing.T) {
		s.write(t, "orders.yaml", strings.ReplaceAll(orders, "orders_number_key", "orders_nummer_key"))
		r := s.semel(t, "run", "--config", "orders.yaml")
		if r.code == 0 || !strings.Contains(r.errors, `orders.yaml:13:57`) || !strings.Contains(r.errors, `no unique constraint or index "orders_nummer_key"`) {
			t.Errorf("%+v", r)
		}
	})
	for _, there := range []string{"apart", "lower_key"} {
		s.write(t, "orders.yaml", strings.ReplaceAll(orders, "orders_number_key", there))
		if r := s.semel(t, "run", "--config", "orders.yaml"); r.code != 0 {
			t.Errorf("%s: %+v", there, r)
		}
	}
}

const stock = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: stock.sql}}
sources: {sales: {file: {path: stock.jsonl, format: json}}}
consumers:
  stock:
    from: sales
    store: shop
    identity: {id: "body:/id"}
    retry: {max_attempts: 1}
    handler:
      sql:
        params: {item: "body:/item"}
        statements:
          - {sql: "update stock set n = n - 1 where item = :item", rows: 1, otherwise: discard}
          - {sql: "insert into sold values (:item)"}
          - {sql: "update watchers set n = n + 1 where item = :item"}
`

func TestTheFirstStatementThatIsRefusedDecides(t *testing.T) {
	s := example(t, services.Postgres(t))
	s.write(t, "stock.yaml", stock)
	s.write(t, "stock.sql", `create table stock (item text primary key, n bigint not null);
		create table sold (item text references stock); create table watchers (item text, n bigint);
		insert into stock values ('apple', 5)`)
	s.write(t, "stock.jsonl", `{"id":1,"item":"apple"}
{"id":2,"item":"stone"}
{"id":3,"item":"apple"}
`)
	r := s.semel(t, "run", "--config", "stock.yaml", "-o", "json")
	var got summary
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	// For the message "stone", the second statement also fails, because the item does not exist.
	if counts := got.Consumers["stock"]; counts["applied"] != 2 || counts["discarded"] != 1 || counts["parked"] != 0 {
		t.Errorf("%v", counts)
	}
	if n := queryOne[int](t, s.dsn, `select n from stock`); n != 3 {
		t.Errorf("%d apples are left", n)
	}
	t.Run("a_statement_that_changes_nothing_is_told_once", func(t *testing.T) {
		if n := strings.Count(r.errors, "changed no row"); n != 1 {
			t.Errorf("%d warnings: %s", n, r.errors)
		}
	})
}

// TestATextIsNoAmount passes texts to untyped and typed parameters. PostgreSQL would read texts such as "NaN" and
// "infinity" as numbers.
func TestATextIsNoAmount(t *testing.T) {
	for _, c := range []struct{ name, amount, balance string }{
		{"without_a_type", `"body:/amount"`, "15"},
		{"as_a_decimal", `{from: "body:/amount", type: decimal}`, "15"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example(t, services.Postgres(t))
			s.write(t, "orders.yaml", strings.NewReplacer(
				"strategy: {marker: true, business_key: {constraint: orders_number_key}}", "strategy: marker",
				`params: {number: "body:/number", total: "body:/total", gift: "body:/gift?", whole: "body:"}`, `params: {amount: `+c.amount+`, name: "body:/name"}`,
				`"insert into orders (number, total, gift, whole) values (:number, :total, :gift, :whole)"`,
				`"update accounts set balance = balance + :amount", "insert into names values (:name)"`).Replace(orders))
			s.write(t, "orders.sql", "create table accounts (balance numeric not null); insert into accounts values (0); create table names (name varchar(20));")
			s.write(t, "orders.jsonl", `{"id":"a","amount":"10","name":"Nan"}
{"id":"b","amount":"NaN","name":"Eve"}
{"id":"c","amount":" -infinity","name":"Eve"}
{"id":"d","amount":"inf","name":"Eve"}
{"id":"e","amount":5,"name":"inf"}
`)
			var got summary
			s.runJSON(t, &got, "run", "--config", "orders.yaml", "-o", "json")
			if counts := got.Consumers["orders"]; counts["applied"] != 2 || counts["parked"] != 3 {
				t.Errorf("%v", counts)
			}
			for _, row := range s.listParked(t, "orders.yaml") {
				if row.Reason != "malformed" {
					t.Errorf("%+v", row)
				}
			}
			if got := queryOne[string](t, s.dsn, `select balance::text || (select string_agg(' ' || name, '' order by name = 'inf') from names) from accounts`); got != c.balance+" Nan inf" {
				t.Error(got)
			}
		})
	}
}
