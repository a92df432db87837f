//go:build unix

package http

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/services"
)

// world has the database server, the files and the settings of a measurement.
type world struct {
	Bench
	t              testing.TB
	server         *services.Server
	folder, binary string
}

// database is the name of the database that is created again for each run.
const database = "bank"

// accounts is the number of accounts. It is so large that two transfers rarely lock the same account.
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

// claimed is the first part of a policy whose consumer claims each message before the call. pure is the first
// part for an endpoint that changes nothing itself.
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

// through runs semel over all messages in a new database. It returns the transfers per second.
func (w *world) through(ctx context.Context, policy string) (rate float64, err error) {
	services.Exec(w.t, w.server.DSN(), "drop database if exists "+database+" with (force)")
	services.Exec(w.t, w.server.DSN(), "create database "+database)
	dsn := strings.Replace(w.server.DSN(), "/postgres?", "/"+database+"?", 1)
	if err := w.write("semel.yaml", policy); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, w.binary, "run", "--log-level", "error")
	cmd.Dir, cmd.Env = w.folder, append(os.Environ(), "DATABASE_URL="+dsn)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return w.booked(ctx, dsn)
}

// booked checks that each transfer took effect once, and returns the transfers per second.
func (w *world) booked(ctx context.Context, dsn string) (rate float64, err error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	var n, distinct int
	var sum int64
	var took float64
	err = c.QueryRow(ctx, "select count(*), count(distinct text), extract(epoch from max(at) - min(at))::float8, (select sum(balance) from accounts)::bigint from notes").Scan(&n, &distinct, &took, &sum)
	switch {
	case err != nil:
		return 0, err
	case n != w.Messages || distinct != n || sum != accounts*1_000_000:
		return 0, fmt.Errorf("%d of %d transfers are booked, %d different ones, and %d is in the accounts", n, w.Messages, distinct, sum)
	}
	return float64(n-1) / took, nil
}

func (w *world) write(name, text string) error {
	return os.WriteFile(filepath.Join(w.folder, name), []byte(text), 0o600)
}

// files writes the files that all runs of semel read.
func (w *world) files() error {
	var lines strings.Builder
	for i := range w.Messages {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"t-%d","source":"/bank","type":"transfer.ordered","data":%s}`+"\n", i, transfer(i))
	}
	return errors.Join(w.write("transfers.jsonl", lines.String()), w.write("setup.sql", fmt.Sprintf(setup, accounts-1)))
}

// behind returns the policy for an endpoint. Without leases there are twice as many workers as concurrent
// calls. While some workers wait for the store, the endpoint still has as many requests in flight as under
// the load generator.
func (w *world) behind(url string) string {
	if w.Lease {
		return fmt.Sprintf(head, w.InFlight) + claimed + fmt.Sprintf(endpoint, url)
	}
	return fmt.Sprintf(head, 2*w.InFlight) + fmt.Sprintf(pure, w.InFlight) + fmt.Sprintf(endpoint, url)
}

// asStatements returns the policy in which the same statements are SQL.
func (w *world) asStatements() string { return fmt.Sprintf(head, w.InFlight) + statements }
