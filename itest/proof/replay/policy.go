//go:build unix

package replay

import (
	"fmt"
	"strings"
)

const policyFile = "semel.yaml"

// setup creates the tables. The effect log has no unique key, so an effect that happens twice has two rows.
// The result of the projection does not depend on the order of the transfers.
const setup = `create table accounts (name text primary key);
insert into accounts select 'account-' || to_char(n, 'FM000') from generate_series(0, 499) n;
create function cents(amount text) returns bigint language sql as $$ select amount::bigint $$;
create table effects (
    delivery text not null, generation bigint not null, account text not null references accounts (name),
    cents bigint not null constraint most_cents check (cents < 1000000)
);
create table balances (
    generation bigint not null, account text not null, cents bigint not null, transfers bigint not null,
    digest bigint not null, last text not null,
    primary key (generation, account)
);
`

// For each cause, the SQL statement that repairs it.
var mends = map[cause]string{
	noAccount:  `insert into accounts select 'closed-' || n from generate_series(0, 9) n`,
	tooMuch:    `alter table effects drop constraint most_cents`,
	unreadable: `create or replace function cents(amount text) returns bigint language sql as $$ select replace(amount, ',', '')::bigint $$`,
}

func (r *run) writePolicy() {
	instance := ""
	if r.Static {
		instance = `, instance: "${MEMBER}"`
	}
	r.Write(policyFile, fmt.Sprintf(policy, strings.Join(r.Cluster.Brokers(), ","), r.Session, instance, r.Batch))
}

const policy = `version: 1
stores:
  bank:
    postgres: {url: "${DATABASE}"}
    migrate: true
    setup: setup.sql
sources:
  transfers:
    kafka: {brokers: "%s", topics: [` + topic + `], group: ` + group + `, session_timeout: %s%s}
consumers:
  ` + group + `:
    from: transfers
    store: bank
    identity: {id: "header:ce-id", source: "header:ce-source"}
    batch: {max_size: %d}
    timeout: 5s
    retry: {max_attempts: 4, initial_delay: 50ms, max_delay: 500ms, on_exhausted: dead_letter}
    on_conflict: dead_letter
    dead_letter: {topic: ` + dead + `}
    replay: {allowed: true}
    handler:
      sql:
        params: {id: "header:ce-id", account: "body:/account", amount: "body:/amount"}
        statements:
          - insert into effects (delivery, generation, account, cents)
            values (:id, :generation, :account, cents(:amount))
          - insert into balances (generation, account, cents, transfers, digest, last)
            values (:generation, :account, cents(:amount), 1, cents(:amount) * right(:id, 6)::bigint, :id)
            on conflict (generation, account) do update set cents = balances.cents + excluded.cents,
            transfers = balances.transfers + 1, digest = balances.digest + excluded.digest,
            last = greatest(balances.last collate "C", excluded.last collate "C")
`
