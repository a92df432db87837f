//go:build unix

package http

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// world contains the database server, the files and the settings of a measurement.
type world struct {
	Bench
	proof.Stage
	server *services.Server
	binary string
}

// The name of the database that is created again for each run.
const database = "bank"

// The number of accounts, which is so large that two transfers rarely lock the same account.
const accounts = 10_000

// transfer returns the body of message i.
func transfer(i int) string {
	return fmt.Sprintf(`{"from":"account-%d","to":"account-%d","amount":%d,"text":"transfer %d"}`, i*7919%accounts, (i*7919+5000)%accounts, i%90+1, i)
}

const setup = `create table accounts (id text primary key, balance bigint not null);
insert into accounts select 'account-' || i, 1000000 from generate_series(0, %d) i;
create table notes (account text not null, text text, at timestamptz not null default clock_timestamp());
`

const head = `version: 1
stores: {bank: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: setup.sql}}
sources: {transfers: {file: {path: transfers.jsonl, format: cloudevents}}}
consumers:
  booking:
    from: transfers
    store: bank
    identity: {id: id, source: source}
    workers: %d
`

// The first parts of two policies. With the policy that begins with the constant claimed, the consumer claims each
// message before the call. With the policy that begins with the constant pure, the endpoint changes nothing itself, so
// the consumer claims nothing.
const (
	claimed = `    strategy: lease
    alerts: {pending_age: 60s}
    handler:
      http:
`
	pure = `    strategy: marker
    handler:
      http:
        pure: true
        connections: %d
`
)

const endpoint = `        url: "%s"
        effects:
          statements:
            book: {sql: "update accounts set balance = balance + :amount where id = :account", params: {account: text, amount: integer}, rows: 1}
            note: {sql: "insert into notes (account, text) values (:account, :text)", params: {account: text, text: "text?"}}
`

const statements = `    batch: {max_size: 1}
    lanes: none
    handler:
      sql:
        params: {from: "body:/from", to: "body:/to", amount: "body:/amount", text: "body:/text"}
        statements:
          - {sql: "update accounts set balance = balance - :amount where id = :from", rows: 1}
          - {sql: "update accounts set balance = balance + :amount where id = :to", rows: 1}
          - insert into notes (account, text) values (:to, :text)
`

// runSemel runs semel over all messages in a new database, and returns the transfers per second.
func (w *world) runSemel(ctx context.Context, policy string) float64 {
	services.Exec(w.T, w.server.DSN(), "drop database if exists "+database+" with (force)")
	services.Exec(w.T, w.server.DSN(), "create database "+database)
	dsn := strings.Replace(w.server.DSN(), "/postgres?", "/"+database+"?", 1)
	w.Write("semel.yaml", policy)
	cmd := exec.CommandContext(ctx, w.binary, "run", "--log-level", "error")
	cmd.Dir, cmd.Env = w.Folder, append(os.Environ(), "DATABASE_URL="+dsn)
	if out, err := cmd.CombinedOutput(); err != nil {
		proof.Check(fmt.Errorf("%w: %s", err, out))
	}
	return w.checkTransfers(ctx, dsn)
}

// checkTransfers returns the transfers per second that took effect, and checks that each transfer took effect once.
func (w *world) checkTransfers(ctx context.Context, dsn string) float64 {
	c := proof.Must(pgx.Connect(ctx, dsn))
	defer func() { _ = c.Close(ctx) }()
	var n, distinct int
	var sum int64
	var took float64
	proof.Check(c.QueryRow(ctx, "select count(*), count(distinct text), extract(epoch from max(at) - min(at))::float8, (select sum(balance) from accounts)::bigint from notes").Scan(&n, &distinct, &took, &sum))
	if n != w.Messages || distinct != n || sum != accounts*1_000_000 {
		proof.Check(fmt.Errorf("%d of %d transfers are booked, %d different ones, and %d is in the accounts", n, w.Messages, distinct, sum))
	}
	return float64(n-1) / took
}

// writeFiles writes the files that all runs of semel read.
func (w *world) writeFiles() {
	var lines strings.Builder
	for i := range w.Messages {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"t-%d","source":"/bank","type":"transfer.ordered","data":%s}`+"\n", i, transfer(i))
	}
	w.Write("transfers.jsonl", lines.String())
	w.Write("setup.sql", fmt.Sprintf(setup, accounts-1))
}

// endpointPolicy returns the policy for an endpoint. Without leases, the policy has twice as many workers as
// concurrent calls. So the endpoint has as many requests in flight as under the load generator, even while some workers
// wait for the store.
func (w *world) endpointPolicy(url string) string {
	if w.Lease {
		return fmt.Sprintf(head, w.InFlight) + claimed + fmt.Sprintf(endpoint, url)
	}
	return fmt.Sprintf(head, 2*w.InFlight) + fmt.Sprintf(pure, w.InFlight) + fmt.Sprintf(endpoint, url)
}

// asStatements returns a policy whose handler runs SQL statements. Their effect is that of the endpoint.
func (w *world) asStatements() string { return fmt.Sprintf(head, w.InFlight) + statements }
