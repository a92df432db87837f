//go:build unix

package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// withIntents is a policy whose consumers write intents: one with SQL, one with the answers of an endpoint.
const withIntents = `version: 1
stores:
  shop: {postgres: {url: "${DATABASE_URL}"}, setup: tables.sql}
sources:
  payments: {file: {path: payments.jsonl, format: cloudevents}}
consumers:
  placing:
    from: payments
    store: shop
    identity: {id: id, source: source}
    retention: forever
    effect: {kind: ledger, says: a second one sends two mails}
    handler: {sql: {params: {id: id}, statements: ["insert into booked values (:id)"], intents: [{to: mailer, purpose: receipt}]}}
  asking:
    from: payments
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    retention: forever
    effect: {kind: ledger, says: a second one sends two mails}
    handler:
      http:
        url: "http://127.0.0.1:1/ask"
        effects:
          intents: [mailer]
          statements:
            book: {sql: "insert into booked values (:id)", params: {id: text}}
  mailer:
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    retention: forever
    effect: {kind: external, says: a second one sends two mails}
    handler: {http: {url: "http://127.0.0.1:1/mail"}}
`

// inSteps is a policy whose consumer has steps that write a generation.
const inSteps = `version: 1
stores:
  shop: {postgres: {url: "${DATABASE_URL}"}, setup: stock.sql}
sources:
  payments: {file: {path: payments.jsonl, format: cloudevents}}
consumers:
  fulfilment:
    from: payments
    store: shop
    strategy: inbox
    ack: after_receipt
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    retention: forever
    effect: {kind: ledger, says: a second one ships twice}
    handler:
      sql:
        params: {id: id}
        steps:
          - {name: reserve, statements: [{sql: "insert into stock values (:generation, 1) on conflict (generation) do update set sold = stock.sold + 1", rows: 1}]}
          - {name: ship, statements: ["insert into shipments (generation, id) values (:generation, :id)"]}
`

func TestHandlersAreTestedInSchemasOfTheirOwn(t *testing.T) {
	const names = "select string_agg(nspname, ' ' order by nspname) from pg_catalog.pg_namespace"
	s := example(t, services.Postgres(t))
	before := queryOne[string](t, s.dsn, names)
	tables := "select count(*) from information_schema.tables where table_schema = 'public'"
	var found struct {
		Failed    int
		Consumers []struct {
			Consumer string
			Proof    struct {
				Database string
				Messages int
				Subtests []struct{ Name, Result, Says string }
			}
		}
	}
	t.Run("K3_the_sound_handler_passes_and_nothing_is_left", func(t *testing.T) {
		s.runJSON(t, &found, "check", "--prove", "--config", "postgres.yaml", "-o", "json")
		if len(found.Consumers) != 1 || found.Failed != 0 || found.Consumers[0].Proof.Database != "PostgreSQL" || found.Consumers[0].Proof.Messages != 5 {
			t.Fatalf("%+v", found)
		}
		passed := 0
		for _, r := range found.Consumers[0].Proof.Subtests {
			if r.Result == "pass" {
				passed++
			}
		}
		if passed < 16 {
			t.Errorf("%d subtests passed: %+v", passed, found)
		}
		if after, n := queryOne[string](t, s.dsn, names), queryOne[int](t, s.dsn, tables); after != before || n != 0 {
			t.Errorf("schemas %s, before %s; %d tables in public", after, before, n)
		}
	})
	t.Run("K3_a_business_key_is_tested_with_separate_statements", func(t *testing.T) {
		s.edit(t, "key.yaml", "strategy: marker ", "strategy: {marker: true, business_key: {constraint: entries_payment_key}} ",
			"setup: setup-postgres.sql", "setup: keyed.sql")
		s.write(t, "keyed.sql", "create table accounts (id text primary key, balance bigint not null);\n"+
			"create table entries (payment text unique, account text, amount bigint);\n"+
			"insert into accounts select 'acc-' || lpad(n::text, 3, '0'), 0 from generate_series(0, 99) as n")
		s.runJSON(t, &found, "check", "--prove", "--config", "key.yaml", "-o", "json")
	})
	t.Run("K3_statements_that_leave_the_schema_are_refused", func(t *testing.T) {
		s.edit(t, "public.yaml", "insert into entries", "insert into public.entries")
		s.runRefused(t, []string{"names the schema public", "write the names of tables without a schema"}, "check", "--prove", "--config", "public.yaml")
	})
	t.Run("K3_without_setup_the_tables_cannot_be_created", func(t *testing.T) {
		s.edit(t, "bare.yaml", "setup: setup-postgres.sql", "")
		s.runRefused(t, []string{"store shop has no setup"}, "check", "--prove", "--config", "bare.yaml")
	})
	t.Run("K3_intents_and_answers_with_effects_are_compared", func(t *testing.T) {
		s.write(t, "intents.yaml", withIntents)
		s.write(t, "tables.sql", "create table booked (id text primary key)")
		s.write(t, "sample.jsonl", `{"specversion":"1.0","id":"1","source":"shop","type":"payment","data":{}}`+"\n"+
			`{"specversion":"1.0","id":"2","source":"shop","type":"payment","data":{}}`+"\n")
		s.write(t, "answers.jsonl", strings.Repeat(`{"effects": [], "intents": [{"to": "mailer", "purpose": "receipt"}]}`+"\n", 2))
		s.runJSON(t, &found, "check", "--prove", "--config", "intents.yaml", "--consumer", "placing", "--messages", "sample.jsonl", "-o", "json")
		s.runJSON(t, &found, "check", "--prove", "--config", "intents.yaml", "--consumer", "asking", "--messages", "sample.jsonl", "--answers", "answers.jsonl", "-o", "json")
		if calls := found.Consumers[0].Proof; found.Failed != 0 || calls.Database != "PostgreSQL" || calls.Messages != 2 {
			t.Errorf("%+v", found)
		}
	})
	if after := queryOne[string](t, s.dsn, names); after != before || strings.Contains(after, "semel_prove") {
		t.Errorf("schemas %s are left, before %s", after, before)
	}
}

func TestStepsAreTestedInSchemasOfTheirOwn(t *testing.T) {
	s := example(t, services.Postgres(t))
	s.write(t, "steps.yaml", inSteps)
	s.write(t, "turns.yaml", strings.ReplaceAll(inSteps, `(generation, id) values (:generation, :id)`, `select cast(:generation as bigint), cast(:id as text), sold from stock`))
	s.write(t, "stock.sql", `create table stock (generation bigint primary key, sold bigint);
create table shipments (generation bigint, id text, number bigint, primary key (generation, id))`)
	t.Run("K3_the_sound_handler_passes", func(t *testing.T) {
		r := s.semel(t, "check", "--prove", "--config", "steps.yaml")
		if r.code != 0 || !strings.Contains(r.out, "consumer fulfilment: tested with 5 messages on PostgreSQL\n") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("K3_a_step_that_reads_the_rows_of_other_messages_is_found", func(t *testing.T) {
		if r := s.semel(t, "check", "--prove", "--config", "turns.yaml"); r.code != 4 || !strings.Contains(r.out, "a step reads what") {
			t.Errorf("%+v", r)
		}
	})
}
