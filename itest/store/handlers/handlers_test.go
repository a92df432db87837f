// Package handlers runs package semeltest with sample handlers on SQLite and PostgreSQL.
package handlers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/semeltest"
	"github.com/semel-go/semel/sqlstore"
)

const (
	create = "create table effects (name text primary key, value text)"
	empty  = "delete from effects"
	add    = `insert into effects values ($1, $2) on conflict (name)
		do update set value = cast(cast(effects.value as integer) + cast(excluded.value as integer) as text)`
	set = "insert into effects values ($1, $2) on conflict (name) do update set value = excluded.value"
	get = "select value from effects where name = $1"
	all = "select name || ' ' || value from effects order by name"
)

func createTables(t testing.TB, db *sql.DB, st *sqlstore.Store, err error) *sqlstore.Store {
	t.Helper()
	must(t, err)
	_, err = st.Migrate(t.Context())
	must(t, err)
	_, err = db.Exec(create)
	must(t, err)
	return st
}

// sqliteTables returns a function that empties a database and returns its tables.
func sqliteTables(t testing.TB) func(t testing.TB) tables[*sql.Tx] {
	t.Helper()
	const pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)&_pragma=foreign_keys(1)"
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+pragmas)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	st, err := sqlstore.SQLite(db, sqlstore.Options{})
	st = createTables(t, db, st, err)
	return func(t testing.TB) tables[*sql.Tx] { return standard(t, db, st) }
}

// postgresTables is like sqliteTables, but for PostgreSQL through database/sql.
func postgresTables(t testing.TB) func(t testing.TB) tables[*sql.Tx] {
	t.Helper()
	config, err := pgx.ParseConfig(services.Postgres(t))
	must(t, err)
	db := stdlib.OpenDB(*config)
	db.SetMaxIdleConns(10)
	t.Cleanup(func() { _ = db.Close() })
	st, err := sqlstore.Postgres(db, sqlstore.Options{})
	st = createTables(t, db, st, err)
	return func(t testing.TB) tables[*sql.Tx] { return standard(t, db, st) }
}

// standard empties the table of effects and returns the tables for database/sql.
func standard(t testing.TB, db *sql.DB, st *sqlstore.Store) tables[*sql.Tx] {
	t.Helper()
	_, err := db.Exec(empty)
	must(t, err)
	return tables[*sql.Tx]{
		Store: st,
		Add: func(ctx context.Context, tx *sql.Tx, name string, n int64) error {
			_, err := tx.ExecContext(ctx, add, name, fmt.Sprint(n))
			return err
		},
		Set: func(ctx context.Context, tx *sql.Tx, name, value string) error {
			_, err := tx.ExecContext(ctx, set, name, value)
			return err
		},
		Get: func(ctx context.Context, tx *sql.Tx, name string) (value string, err error) {
			if err = tx.QueryRowContext(ctx, get, name).Scan(&value); errors.Is(err, sql.ErrNoRows) {
				err = nil
			}
			return value, err
		},
		All: func(ctx context.Context) (string, error) { return queryLines(db.QueryContext(ctx, all)) },
		End: func(_ context.Context, tx *sql.Tx) error { return tx.Commit() },
	}
}

func queryLines(rows *sql.Rows, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		found = append(found, line)
	}
	return strings.Join(found, "\n"), rows.Err()
}

// pool returns a pool with the tables of a store.
func pool(t testing.TB) (*pgxpool.Pool, *pgxstore.Store) {
	t.Helper()
	p, err := pgxpool.New(t.Context(), services.Postgres(t))
	must(t, err)
	t.Cleanup(p.Close)
	st, err := pgxstore.New(p, pgxstore.Options{})
	must(t, err)
	_, err = st.Migrate(t.Context())
	must(t, err)
	_, err = p.Exec(t.Context(), create)
	must(t, err)
	return p, st
}

func truncateTables(t testing.TB, p *pgxpool.Pool) {
	t.Helper()
	_, err := p.Exec(context.Background(), empty)
	must(t, err)
}

func listEffects(ctx context.Context, p *pgxpool.Pool) (string, error) {
	rows, err := p.Query(ctx, all)
	if err != nil {
		return "", err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(found, "\n"), err
}

// pgxTables is like sqliteTables, but for PostgreSQL through pgx.
func pgxTables(t testing.TB) func(t testing.TB) tables[pgx.Tx] {
	t.Helper()
	p, st := pool(t)
	return func(t testing.TB) tables[pgx.Tx] {
		t.Helper()
		truncateTables(t, p)
		return tables[pgx.Tx]{
			Store: st,
			Add: func(ctx context.Context, tx pgx.Tx, name string, n int64) error {
				_, err := tx.Exec(ctx, add, name, fmt.Sprint(n))
				return err
			},
			Set: func(ctx context.Context, tx pgx.Tx, name, value string) error {
				_, err := tx.Exec(ctx, set, name, value)
				return err
			},
			Get: func(ctx context.Context, tx pgx.Tx, name string) (value string, err error) {
				if err = tx.QueryRow(ctx, get, name).Scan(&value); errors.Is(err, pgx.ErrNoRows) {
					err = nil
				}
				return value, err
			},
			All: func(ctx context.Context) (string, error) { return listEffects(ctx, p) },
			End: func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "commit")
				return err
			},
		}
	}
}

// expectPass calls the test kit with a handler that must pass.
func expectPass[Tx any](t *testing.T, s sample[Tx], in func(t testing.TB) tables[Tx]) {
	t.Run(strings.ReplaceAll(s.Name, " ", "_"), func(t *testing.T) {
		semeltest.Run(t, func(t *testing.T) semeltest.Handler[Tx] { return s.newHandler(t, in(t)) })
	})
}

func good[Tx any](t *testing.T, samples []sample[Tx], open func(t testing.TB) func(t testing.TB) tables[Tx]) {
	t.Helper()
	t.Parallel()
	in := open(t)
	for _, s := range samples {
		expectPass(t, s, in)
	}
}

func TestAHandlerWithoutAFaultPasses(t *testing.T) {
	t.Run("memory", func(t *testing.T) { good(t, sound[*memstore.Tx](), memory) })
	t.Run("SQLite", func(t *testing.T) { good(t, sound[*sql.Tx](), sqliteTables) })
	t.Run("PostgreSQL_with_database/sql", func(t *testing.T) { good(t, onServers(sound[*sql.Tx]()), postgresTables) })
	t.Run("PostgreSQL_with_pgx", func(t *testing.T) { good(t, onServers(sound[pgx.Tx]()), pgxTables) })
	t.Run("PostgreSQL_with_a_queue", func(t *testing.T) {
		t.Parallel()
		p, st := pool(t)
		semeltest.Run(t, func(t *testing.T) semeltest.Handler[*pgxstore.Queue] {
			truncateTables(t, p)
			return semeltest.Handler[*pgxstore.Queue]{
				Store: st.Queued(),
				Handle: func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
					q.ExecOne(add, m.ID(), "1")
					return nil
				},
				Messages: []*semel.Message{semeltest.Message("a", "{}"), semeltest.Message("b", "{}")},
				Effect:   func(ctx context.Context) (string, error) { return listEffects(ctx, p) },
			}
		})
	})
}

// The name of the environment variable of a child process whose subtests must fail.
const variable = "SEMEL_TEST_FAULTY"

func TestTheFirstFailedSubtestNamesTheFault(t *testing.T) {
	if os.Getenv(variable) != "" {
		expectFail(t, "memory", faults[*memstore.Tx](false), memory)
		expectFail(t, "SQLite", faults[*sql.Tx](true), sqliteTables)
		expectFail(t, "database/sql", onServers(faults[*sql.Tx](true)), postgresTables)
		expectFail(t, "pgx", onServers(faults[pgx.Tx](true)), pgxTables)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"=yes")
	output, err := child.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		t.Fatalf("the child ended with %v\n%s", err, output)
	}
	for store, samples := range map[string][]sample[int]{
		"memory": faults[int](false), "SQLite": faults[int](true), "database/sql": onServers(faults[int](true)), "pgx": onServers(faults[int](true)),
	} {
		for _, s := range samples {
			_, report, found := strings.Cut(string(output), "=== NAME  "+t.Name()+"/"+store+"/"+strings.ReplaceAll(s.Name, " ", "_")+"\n")
			_, report, failed := strings.Cut(report, "FAIL  ")
			first, _, _ := strings.Cut(report, "\n")
			if in, _, _ := strings.Cut(first, "  "); !found || !failed || in != s.In || !strings.Contains(first, s.Says) {
				t.Errorf("%s, %s: found first: %s\nwant in %q: … %s …", store, s.Name, first, s.In, s.Says)
			}
		}
	}
}

// expectFail calls the test kit with handlers that must fail.
func expectFail[Tx any](t *testing.T, name string, samples []sample[Tx], open func(t testing.TB) func(t testing.TB) tables[Tx]) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		in := open(t)
		for _, s := range samples {
			expectPass(t, s, in)
		}
	})
}
