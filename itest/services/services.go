// Package services gives tests real servers.
//
// There are two kinds of servers. The script scripts/services starts the shared servers and puts their addresses into
// environment variables. [Postgres] and [PgBouncer] give each test a database of its own on a shared server, and
// [Topic] creates a topic on the shared broker of [Kafka]. A private server, started by [StartPostgres] or
// [StartKafka], belongs to one test, and this test may kill, freeze and promote the server.
//
// If a server is missing, tests of this server fail with a message that says how to start the server. Tests are never
// skipped because a server is missing.
package services

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/itest/must"
)

// The time for which a test waits for a server to answer, start or end. A healthy server needs only a hundredth of the
// time patience.
const patience = 3 * time.Minute

// Postgres returns the connection string of a new, empty database on the shared server. When
// the test ends, the database is dropped and its connections are closed.
//
// The test fails if SEMEL_POSTGRES is not set or the server does not answer.
func Postgres(t testing.TB) string {
	t.Helper()
	return database(t, address(t, "SEMEL_POSTGRES", "postgres"))
}

// Hurry makes a database confirm commits before the commits are on disk. Use Hurry for tests in which the machine does
// not lose power.
func Hurry(t testing.TB, dsn string) {
	t.Helper()
	Exec(t, dsn, "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$")
}

// PgBouncer returns the connection string of a new, empty database behind the shared PgBouncer, which uses
// pool_mode transaction. The database is dropped when the test ends.
//
// The test fails if SEMEL_PGBOUNCER is not set or the server does not answer.
func PgBouncer(t testing.TB) string {
	t.Helper()
	_, pooled := Pooled(t)
	return pooled
}

// Pooled creates a database and returns two connection strings: one direct to the shared server, one through
// PgBouncer.
func Pooled(t testing.TB) (direct, pooled string) {
	t.Helper()
	bouncer := address(t, "SEMEL_PGBOUNCER", "pgbouncer")
	direct = database(t, address(t, "SEMEL_POSTGRES", "postgres"))
	return direct, withDatabase(t, bouncer, databaseOf(t, direct))
}

// Exec runs statements on a connection of its own and fails the test on errors.
func Exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must.OK(t, exec(ctx, dsn, statements...))
}

func address(t testing.TB, variable, server string) string {
	t.Helper()
	dsn := os.Getenv(variable)
	if dsn == "" {
		t.Fatalf("%s is not set: this test needs %s. Start it with\n"+
			"\tscripts/services up %s && eval \"$(scripts/services env)\"\n"+
			"or run the tests as\n\tscripts/services with postgres pgbouncer kafka -- go test ./itest/...", variable, server, server)
	}
	return dsn
}

func database(t testing.TB, dsn string) string {
	t.Helper()
	name := "semel_" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must.OK(t, create(ctx, dsn, name))
	t.Cleanup(func() { Exec(t, dsn, "drop database if exists "+name+" with (force)") })
	return withDatabase(t, dsn, name)
}

func withDatabase(t testing.TB, dsn, name string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("%q is not a connection address: %v", dsn, err)
	}
	u.Path = "/" + name
	return u.String()
}

func databaseOf(t testing.TB, dsn string) string {
	t.Helper()
	c := must.Get(pgconn.ParseConfig(dsn))(t)
	return c.Database
}

// create creates a database with the strategy that copies the template's files. Since version 15 PostgreSQL
// writes the template to the WAL page by page by default, which takes six times as long.
func create(ctx context.Context, dsn, name string) error {
	c, err := connectTo(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	statement := "create database " + name
	var major int
	if _, err := fmt.Sscan(c.ParameterStatus("server_version"), &major); err == nil && major >= 15 {
		statement += " strategy file_copy"
	}
	return run(ctx, c, statement)
}

func connectTo(ctx context.Context, dsn string) (*pgconn.PgConn, error) {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("no connection to %s: %w; see scripts/services status", dsn, err)
	}
	return c, nil
}

func exec(ctx context.Context, dsn string, statements ...string) error {
	c, err := connectTo(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	return run(ctx, c, statements...)
}

func run(ctx context.Context, c *pgconn.PgConn, statements ...string) error {
	for _, s := range statements {
		if _, err := c.Exec(ctx, s).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// Within calls condition every 10 ms until condition returns true, but at most for the time limit. Within reports
// whether condition returned true.
func Within(limit time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return waitUntil(ctx, condition) == nil
}

// waitUntil calls the function ready every 10 ms, until ready returns true or ctx ends.
func waitUntil(ctx context.Context, ready func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
