// Package postgres runs the conformance suites of sqlstore against PostgreSQL servers.
package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// openDB opens a database with the driver pgx for the duration of the test. The options are appended to the
// connection string.
func openDB(t testing.TB, dsn string, options ...string) *sql.DB {
	t.Helper()
	return openTraced(t, strings.Join(append([]string{dsn}, options...), "&"), nil)
}

// openTraced is like openDB, and adds a tracer to the connections.
func openTraced(t testing.TB, dsn string, tracer pgx.QueryTracer) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Tracer = tracer
	db := stdlib.OpenDB(*config)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The function fresh creates an empty database and opens it.
func fresh(t testing.TB, options ...string) *sql.DB {
	t.Helper()
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	return openDB(t, dsn, options...)
}

func bare(t testing.TB, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Postgres(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The function migrated returns a store whose tables exist.
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

// The function one returns the value of a query that returns a single value.
func one[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return v
}

var schemas atomic.Int64 // number in the name of the next schema, because many tests share a database

// shop is a store in a schema of its own, with a table of effects that has no unique key.
type shop struct {
	storetest.Instance[*sql.Tx]
	db     *sql.DB
	store  *sqlstore.Store
	schema string
}

func newShop(t testing.TB, db *sql.DB, o sqlstore.Options) *shop {
	t.Helper()
	o.Schema = fmt.Sprintf("Case %d", schemas.Add(1))
	s := shopOf(t, db, migrated(t, db, o), o.Schema)
	s.execAll(t, sqlsuite.Effects)
	return s
}

// The function lent gives the test cases of a suite a store; each test case uses the emptied tables of an earlier test
// case.
func lent(db *sql.DB) *services.Lent[*shop] {
	return &services.Lent[*shop]{Make: func(t testing.TB) *shop { return newShop(t, db, sqlstore.Options{}) }, Empty: emptied}
}

func emptied(t testing.TB, used *shop) *shop {
	t.Helper()
	used.exec(t, services.Emptying(used.schema, "semel_migrations", "once"))
	store := bare(t, used.db, sqlstore.Options{Schema: used.schema})
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shopOf(t, used.db, store, used.schema)
}

func shopOf(t testing.TB, db *sql.DB, store *sqlstore.Store, schema string) *shop {
	s := &shop{db: db, store: store, schema: schema}
	t.Cleanup(func() { s.sound(t) })
	s.Instance = storetest.Instance[*sql.Tx]{
		Store: s.store, Effect: s.effect, Spoil: s.spoil, End: end, Send: send,
		Count: func(t testing.TB, name string) int {
			return one[int](t, db, s.in("select count(*) from in.effects where name = $1"), []byte(name))
		},
		Remove: func(t testing.TB, number int64) {
			s.exec(t, "delete from in.semel_inbox where number = $1", number)
		},
		Ahead:  func(t testing.TB, by time.Duration) { exec(t, db, services.Ahead(s.schema, by)) },
		Agrees: func(t testing.TB) { sqlsuite.Agrees(t, s.store) },
		Damage: func(t testing.TB, number int64) {
			s.exec(t, "update in.semel_inbox set envelope = '{' where number = $1", number)
		},
	}
	return s
}

// The method in replaces "in." in the text by the schema's name.
func (s *shop) in(text string) string {
	return strings.ReplaceAll(text, "in.", `"`+s.schema+`".`)
}

func (s *shop) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	exec(t, s.db, s.in(statement), args...)
}

func (s *shop) execAll(t testing.TB, statements []string) {
	t.Helper()
	for _, statement := range statements {
		s.exec(t, statement)
	}
}

// sound checks what must hold after every test: no connection is in use and no guard row is left.
func (s *shop) sound(t testing.TB) {
	for range 100 { // database/sql returns a connection whose query was cancelled with a delay
		if s.db.Stats().InUse == 0 {
			break
		}
		exec(t, s.db, "select pg_sleep(0.02)")
	}
	if n := s.db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are held", n)
	}
	if n := one[int](t, s.db, s.in(`select count(*) from in.semel_guard`)); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}

func (s *shop) effect(ctx context.Context, tx *sql.Tx, name string) error {
	_, err := tx.ExecContext(ctx, s.in("insert into in.effects values ($1)"), []byte(name))
	return err
}

func (s *shop) spoil(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, s.in("insert into in.once values ('there')"))
	return err
}

func end(tx *sql.Tx, commit bool) error {
	if commit {
		return tx.Commit()
	}
	return tx.Rollback()
}

func send(ctx context.Context, tx *sql.Tx, statement string) error {
	_, err := tx.ExecContext(ctx, statement)
	return err
}

func (s *shop) marks(t testing.TB, ids ...string) []store.Mark {
	t.Helper()
	return sqlsuite.Marks(t, s.Store, "", ids...)
}

func (s *shop) begin(t testing.TB, o store.TxOptions, marks []store.Mark) (store.Batch[*sql.Tx], []store.Verdict) {
	t.Helper()
	return sqlsuite.Begin(t, s.Store, o, marks)
}

// attempt runs one batch that writes an effect for each message that is new.
func (s *shop) attempt(t testing.TB, marks []store.Mark) (store.Result, error) {
	t.Helper()
	r, _, err := sqlsuite.Attempt(t, s.Instance, marks)
	return r, err
}

// The method works checks, after the end of a fault, that a new attempt applies the messages once.
func (s *shop) works(t testing.TB, marks []store.Mark) {
	t.Helper()
	sqlsuite.Works(t, s.Instance, marks)
}

// The method is checks the class and the text of an error.
func (s *shop) is(t testing.TB, err error, class store.Class, says string) {
	t.Helper()
	sqlsuite.Is(t, s.Store, err, class, says)
}

// The function until waits until the condition is true in the database.
func until(t testing.TB, db *sql.DB, condition string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for holds := false; !holds; {
		if err := db.QueryRowContext(ctx, condition, args...).Scan(&holds); err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
	}
}
