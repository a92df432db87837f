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

// newDatabase creates an empty database and opens it.
func newDatabase(t testing.TB, options ...string) *sql.DB {
	t.Helper()
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	return openDB(t, dsn, options...)
}

func newUnmigratedStore(t testing.TB, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Postgres(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newMigratedStore returns a store whose tables exist.
func newMigratedStore(t testing.TB, db *sql.DB, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s := newUnmigratedStore(t, db, o)
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

// queryOne returns the value of a query that returns a single value.
func queryOne[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return v
}

var schemas atomic.Int64 // number in the name of the next schema, because many tests share a database

// fixture is a store in a schema of its own, with a table of effects that has no unique key.
type fixture struct {
	storetest.Instance[*sql.Tx]
	db     *sql.DB
	store  *sqlstore.Store
	schema string
}

func newFixture(t testing.TB, db *sql.DB, o sqlstore.Options) *fixture {
	t.Helper()
	o.Schema = fmt.Sprintf("Case %d", schemas.Add(1))
	s := fixtureOf(t, db, newMigratedStore(t, db, o), o.Schema)
	s.execAll(t, sqlsuite.Effects)
	return s
}

// newLent gives the test cases of a suite a store; each test case uses the emptied tables of an earlier test
// case.
func newLent(db *sql.DB) *services.Lent[*fixture] {
	return &services.Lent[*fixture]{Make: func(t testing.TB) *fixture { return newFixture(t, db, sqlstore.Options{}) }, Empty: truncateTables}
}

func truncateTables(t testing.TB, used *fixture) *fixture {
	t.Helper()
	used.exec(t, services.Emptying(used.schema, "semel_migrations", "once"))
	store := newUnmigratedStore(t, used.db, sqlstore.Options{Schema: used.schema})
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fixtureOf(t, used.db, store, used.schema)
}

func fixtureOf(t testing.TB, db *sql.DB, store *sqlstore.Store, schema string) *fixture {
	s := &fixture{db: db, store: store, schema: schema}
	t.Cleanup(func() { s.sound(t) })
	s.Instance = storetest.Instance[*sql.Tx]{
		Store: s.store, Effect: s.effect, Spoil: s.spoil, End: end, Send: send,
		Count: func(t testing.TB, name string) int {
			return queryOne[int](t, db, s.inSchema("select count(*) from in.effects where name = $1"), []byte(name))
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

// inSchema replaces "in." in the text by the schema's name.
func (s *fixture) inSchema(text string) string {
	return strings.ReplaceAll(text, "in.", `"`+s.schema+`".`)
}

func (s *fixture) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	exec(t, s.db, s.inSchema(statement), args...)
}

func (s *fixture) execAll(t testing.TB, statements []string) {
	t.Helper()
	for _, statement := range statements {
		s.exec(t, statement)
	}
}

// sound checks what must hold after every test: no connection is in use and no guard row is left.
func (s *fixture) sound(t testing.TB) {
	for range 100 { // database/sql returns a connection whose query was cancelled with a delay
		if s.db.Stats().InUse == 0 {
			break
		}
		exec(t, s.db, "select pg_sleep(0.02)")
	}
	if n := s.db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are held", n)
	}
	if n := queryOne[int](t, s.db, s.inSchema(`select count(*) from in.semel_guard`)); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}

func (s *fixture) effect(ctx context.Context, tx *sql.Tx, name string) error {
	_, err := tx.ExecContext(ctx, s.inSchema("insert into in.effects values ($1)"), []byte(name))
	return err
}

func (s *fixture) spoil(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, s.inSchema("insert into in.once values ('there')"))
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

func (s *fixture) makeMarks(t testing.TB, ids ...string) []store.Mark {
	t.Helper()
	return sqlsuite.Marks(t, s.Store, "", ids...)
}

func (s *fixture) begin(t testing.TB, o store.TxOptions, marks []store.Mark) (store.Batch[*sql.Tx], []store.Verdict) {
	t.Helper()
	return sqlsuite.Begin(t, s.Store, o, marks)
}

// attempt runs one batch that writes an effect for each message that is new.
func (s *fixture) attempt(t testing.TB, marks []store.Mark) (store.Result, error) {
	t.Helper()
	r, _, err := sqlsuite.Attempt(t, s.Instance, marks)
	return r, err
}

// expectWorks checks, after the end of a fault, that a new attempt applies the messages once.
func (s *fixture) expectWorks(t testing.TB, marks []store.Mark) {
	t.Helper()
	sqlsuite.Works(t, s.Instance, marks)
}

// expectError checks the class and the text of an error.
func (s *fixture) expectError(t testing.TB, err error, class store.Class, says string) {
	t.Helper()
	sqlsuite.Is(t, s.Store, err, class, says)
}

// waitTrue waits until the condition is true in the database.
func waitTrue(t testing.TB, db *sql.DB, condition string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for holds := false; !holds; {
		if err := db.QueryRowContext(ctx, condition, args...).Scan(&holds); err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
	}
}
