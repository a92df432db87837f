// Package postgres runs the suites of sqlstore against PostgreSQL servers.
package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/storetest"
)

// openDB opens a database with pgx for the time of the test. Options are
// appended to the connection string.
func openDB(t testing.TB, dsn string, options ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", strings.Join(append([]string{dsn}, options...), "&"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// fresh is a database of its own.
func fresh(t testing.TB) *sql.DB {
	t.Helper()
	return openDB(t, services.Postgres(t))
}

func bare(t testing.TB, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Postgres(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// migrated is a store whose schema is there.
func migrated(t testing.TB, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s := bare(t, db, o)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one is the value that a query returns.
func one[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return v
}

var schemas atomic.Int64 // numbers them, so that a database serves many tests

// instance is a store in a new schema, with a table of effects that has no
// unique key.
func instance(t testing.TB, db *sql.DB, o sqlstore.Options) storetest.Instance[*sql.Tx] {
	t.Helper()
	o.Schema = fmt.Sprintf("Case %d", schemas.Add(1))
	t.Cleanup(func() { sound(t, db, o.Schema) })
	return instanceOn(t, migrated(t, db, o), db, o.Schema)
}

// sound checks what must hold after every test: no connection is held and no
// guard is left.
func sound(t testing.TB, db *sql.DB, schema string) {
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are held", n)
	}
	if n := one[int](t, db, fmt.Sprintf(`select count(*) from %q.semel_guard`, schema)); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}

func instanceOn(t testing.TB, s *sqlstore.Store, db *sql.DB, schema string) storetest.Instance[*sql.Tx] {
	t.Helper()
	in := func(text string) string { return strings.ReplaceAll(text, "in.", fmt.Sprintf("%q.", schema)) }
	exec(t, db, in("create table in.effects (name bytea not null)"))
	exec(t, db, in("create index on in.effects using hash (name)"))
	exec(t, db, in("create table in.once (name text primary key)"))
	exec(t, db, in("insert into in.once values ('there')"))
	return storetest.Instance[*sql.Tx]{
		Store: s,
		Effect: func(ctx context.Context, tx *sql.Tx, name string) error {
			_, err := tx.ExecContext(ctx, in("insert into in.effects values ($1)"), []byte(name))
			return err
		},
		Count: func(t testing.TB, name string) int {
			return one[int](t, db, in("select count(*) from in.effects where name = $1"), []byte(name))
		},
		Spoil: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, in("insert into in.once values ('there')"))
			return err
		},
		End: func(tx *sql.Tx, commit bool) error {
			if commit {
				return tx.Commit()
			}
			return tx.Rollback()
		},
		Damage: func(t testing.TB, number int64) {
			exec(t, db, in("update in.semel_inbox set envelope = '{' where number = $1"), number)
		},
	}
}

// everything is what the store can beyond semel.TxStore.
var everything = storetest.Abilities{Inbox: true, MarkIn: true, Positions: true}

var (
	_ semel.TxStore[*sql.Tx] = (*sqlstore.Store)(nil)
)
