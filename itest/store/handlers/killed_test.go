package handlers

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlertest"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/semeltest"
	"github.com/semel-go/semel/sqlstore"
)

func TestBillingInKilledProcesses(t *testing.T) {
	path := semeltest.Process(filepath.Join(t.TempDir(), "shop.db"))
	db, store := newFixture(t, path)
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[*sql.Tx] {
		if _, err := db.Exec("delete from payments"); err != nil {
			t.Fatal(err)
		}
		return semeltest.Handler[*sql.Tx]{
			Store:    store,
			Handle:   record,
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect: func(ctx context.Context) (string, error) {
				return queryLines(db.QueryContext(ctx, "select id || ' ' || amount from payments order by id"))
			},
			Process: path,
		}
	})
}

// record is the handler bill for SQLite.
func record(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
	p, err := semel.JSON[struct{ Amount int64 }](m)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "insert into payments values (?, ?)", m.ID(), p.Amount)
	return err
}

// newFixture opens a database file, and creates its tables if they are missing.
func newFixture(t *testing.T, path string) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=foreign_keys(1)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	st, err := sqlstore.SQLite(db, sqlstore.Options{})
	must(t, err)
	_, err = st.Migrate(t.Context())
	must(t, err)
	_, err = db.Exec("create table if not exists payments (id text primary key, amount integer)")
	must(t, err)
	return db, st
}

func TestKilledProcessesOnPostgreSQL(t *testing.T) {
	url := semeltest.Process("")
	if url == "" {
		url = services.Postgres(t)
	}
	db, err := sql.Open("pgx", url)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	st, err := sqlstore.Postgres(db, sqlstore.Options{})
	must(t, err)
	_, err = st.Migrate(t.Context())
	must(t, err)
	_, err = db.Exec(strings.Replace(create, "create table", "create table if not exists", 1))
	must(t, err)
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[*sql.Tx] {
		in := standard(t, db, st)
		return semeltest.Handler[*sql.Tx]{
			Store:    st,
			Handle:   func(ctx context.Context, tx *sql.Tx, m *semel.Message) error { return in.Add(ctx, tx, "sum", 1) },
			Messages: []*semel.Message{semeltest.Message("a", "{}"), semeltest.Message("b", "{}")},
			Effect:   in.All,
			Process:  url,
		}
	})
}

// killedSubtests runs the subtests that kill a child process of this test, and the subtests that they need.
func killedSubtests(t *testing.T, path string, handle func(ctx context.Context, tx *sql.Tx, m *semel.Message) error) map[string]error {
	t.Helper()
	found := map[string]error{}
	db, store := newFixture(t, path)
	handlertest.Run(func(t handlertest.T) handlertest.Handler[*sql.Tx] {
		if _, err := db.Exec("delete from payments"); err != nil {
			t.Fatal(err)
		}
		return handlertest.Handler[*sql.Tx]{
			Store:    store,
			Handle:   handle,
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect: func(ctx context.Context) (string, error) {
				return queryLines(db.QueryContext(ctx, "select id || ' ' || amount from payments order by id"))
			},
			Process: &handlertest.Process{Database: path, Command: func(ctx context.Context, of handlertest.T) (*exec.Cmd, error) {
				return exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.ReplaceAll(of.Name(), "/", "$/^")+"$"), nil
			}},
		}
	}, func(name string, run func(t handlertest.T) error) error {
		if strings.HasPrefix(name, "process killed") {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { found[name] = run(t) })
		}
		return found[name]
	})
	return found
}

func TestAChildProcessOnAnotherDatabaseIsAFault(t *testing.T) {
	found := killedSubtests(t, filepath.Join(t.TempDir(), "shop.db"), record) // without semeltest.Process
	if len(found) != 2 {
		t.Fatalf("%d subtests killed a process", len(found))
	}
	for name, err := range found {
		if err == nil || !strings.Contains(err.Error(), "let start open the database that semeltest.Process returns") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
