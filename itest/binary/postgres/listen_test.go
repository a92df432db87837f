//go:build unix

package postgres

import (
	"os"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
)

const hearing = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}", listen: "${DATABASE_URL}"}, migrate: true, setup: hearing.sql}}
sources: {orders: {file: {path: orders.jsonl, format: json, follow: true}}}
consumers:
  orders:
    from: orders
    store: shop
    identity: {id: "body:/id"}
    inbox: {poll: 1m}
    handler: {sql: {params: {id: "body:/id"}, statements: [{sql: "update accounts set orders = orders + 1 where id = :id", rows: 1}]}}
`

func (s fixture) waitTrue(t *testing.T, query string) {
	t.Helper()
	for over := time.Now().Add(30 * time.Second); !queryOne[bool](t, s.dsn, query); {
		if time.Now().After(over) {
			t.Fatalf("not within 30 s: %s", query)
		}
	}
}

func TestARetryIsHeard(t *testing.T) {
	for name, command := range map[string][]string{
		"D6_K11_by_the_process_that_runs_the_consumer": {"messages", "retry", "--config", "hearing.yaml"},
		"D6_K11_also_where_there_is_no_policy":         {"messages", "retry", "--store", "", "--consumer", "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			s := example(t, services.Postgres(t))
			s.write(t, "hearing.yaml", hearing)
			s.write(t, "hearing.sql", "create table accounts (id text primary key, orders int not null);")
			s.write(t, "orders.jsonl", "{\"id\":\"a\"}\n")
			cmd, log := s.startCommand(t, "run", "--config", "hearing.yaml")
			s.waitTrue(t, "select to_regclass('semel_inbox') is not null")
			s.waitTrue(t, "select exists (select from semel_inbox where state = 'PARKED')")
			s.waitTrue(t, "select exists (select from pg_stat_activity where datname = current_database() and state = 'idle' and query = 'listen semel_due')")
			queryOne[int](t, s.dsn, "insert into accounts values ('a', 0) returning 1")
			for i, arg := range command {
				if arg == "" {
					command[i] = s.dsn
				}
			}
			began := time.Now()
			var all any
			s.runJSON(t, &all, append(command, "-o", "json", "--all", "--because", "the account is open", "--wait", "--state", "parked")...)
			if n := queryOne[int](t, s.dsn, "select orders from accounts"); n != 1 {
				t.Errorf("%d orders", n)
			}
			// Without a notification the consumer would look for due rows after half a minute.
			if took := time.Since(began); took > 25*time.Second {
				t.Errorf("it took %v", took)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, log)
			}
		})
	}
}
