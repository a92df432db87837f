// Package pgxstore runs the conformance suites of stores against pgxstore, with real PostgreSQL servers.
package pgxstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/storetest"
)

// openPool opens a pool for the duration of the test. The functions of the parameter change adjust the pool's
// configuration.
func openPool(t testing.TB, dsn string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 30
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// useUnnamed configures pgx to use unnamed prepared statements.
func useUnnamed(c *pgxpool.Config) {
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
}

// useTextArgs configures pgx to send arguments as text, without asking the server for types.
func useTextArgs(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec }

// fixture is a store in a schema of its own, with a table of effects that has no unique key.
type fixture struct {
	*pgxstore.Store
	pool   *pgxpool.Pool
	schema string
}

var schemas atomic.Int64 // number in the name of the next schema, because many tests share a database

func newFixture(t testing.TB, pool *pgxpool.Pool) *fixture {
	t.Helper()
	h := &fixture{pool: pool, schema: fmt.Sprintf("Case %d", schemas.Add(1))}
	store, err := pgxstore.New(pool, pgxstore.Options{Schema: h.schema})
	if err != nil {
		t.Fatal(err)
	}
	h.Store = store
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.execAll(t, sqlsuite.Effects)
	t.Cleanup(func() { h.sound(t) })
	return h
}

// newLent gives the test cases of a suite a store; each test case uses the emptied tables of an earlier test
// case.
func newLent(pool *pgxpool.Pool) *services.Lent[*fixture] {
	return &services.Lent[*fixture]{Make: func(t testing.TB) *fixture { return newFixture(t, pool) }, Empty: truncateTables}
}

func truncateTables(t testing.TB, used *fixture) *fixture {
	t.Helper()
	used.exec(t, services.Emptying(used.schema, "semel_migrations", "once"))
	h := used.withPool(t, used.pool)
	if err := h.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.sound(t) })
	return h
}

// withPool returns a store on the same schema with another pool.
func (h *fixture) withPool(t testing.TB, pool *pgxpool.Pool) *fixture {
	t.Helper()
	store, err := pgxstore.New(pool, pgxstore.Options{Schema: h.schema})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Store: store, pool: pool, schema: h.schema}
}

// inSchema replaces "in." in the text by the schema's name.
func (h *fixture) inSchema(text string) string {
	return strings.ReplaceAll(text, "in.", fmt.Sprintf("%q.", h.schema))
}

func (h *fixture) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := h.pool.Exec(context.Background(), h.inSchema(text), args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (h *fixture) execAll(t testing.TB, statements []string) {
	t.Helper()
	for _, statement := range statements {
		h.exec(t, statement)
	}
}

func (h *fixture) number(t testing.TB, text string, args ...any) (n int) {
	t.Helper()
	if err := h.pool.QueryRow(context.Background(), h.inSchema(text), args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func (h *fixture) count(t testing.TB, name string) int {
	t.Helper()
	return h.number(t, "select count(*) from in.effects where name = $1", []byte(name))
}

// sound checks what must hold after every test: no connection is acquired and no guard row is left.
func (h *fixture) sound(t testing.TB) {
	// The pool closes a broken connection in a goroutine, and counts the connection as acquired until it is closed. The
	// check polls every millisecond, because thousands of test cases run this check.
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(2 * time.Minute); h.pool.Stat().AcquiredConns() != 0; <-look.C {
		if time.Now().After(deadline) {
			t.Errorf("%d connections are held", h.pool.Stat().AcquiredConns())
			break
		}
	}
	if n := h.number(t, "select count(*) from in.semel_guard"); n != 0 {
		t.Errorf("%d guards are left", n)
	}
}

func (h *fixture) remove(t testing.TB, number int64) {
	h.exec(t, "delete from in.semel_inbox where number = $1", number)
}

func (h *fixture) setClockAhead(t testing.TB, by time.Duration) {
	h.exec(t, services.Ahead(h.schema, by))
}

func (h *fixture) damage(t testing.TB, number int64) {
	h.exec(t, "update in.semel_inbox set envelope = '{' where number = $1", number)
}

const insert = "insert into in.effects values ($1)"

// directInstance returns the store whose handlers get a pgx.Tx.
func (h *fixture) directInstance() storetest.Instance[pgx.Tx] {
	return storetest.Instance[pgx.Tx]{
		Store: h.Store,
		Effect: func(ctx context.Context, tx pgx.Tx, name string) error {
			_, err := tx.Exec(ctx, h.inSchema(insert), []byte(name))
			return err
		},
		Count: h.count,
		Spoil: func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, h.inSchema("insert into in.once values ('there')"))
			return err
		},
		End: func(tx pgx.Tx, commit bool) error {
			_, err := tx.Exec(context.Background(), map[bool]string{true: "commit", false: "rollback"}[commit])
			return err
		},
		Send: func(ctx context.Context, tx pgx.Tx, statement string) error {
			_, err := tx.Exec(ctx, statement)
			return err
		},
		Remove: h.remove,
		Damage: h.damage,
		Ahead:  h.setClockAhead,
	}
}

// queuedInstance returns the store whose handlers queue their statements.
func (h *fixture) queuedInstance() storetest.Instance[*pgxstore.Queue] {
	return storetest.Instance[*pgxstore.Queue]{
		Store: h.Queued(),
		Effect: func(_ context.Context, q *pgxstore.Queue, name string) error {
			q.ExecOne(h.inSchema(insert), []byte(name))
			return q.Err()
		},
		Count: h.count,
		Send: func(_ context.Context, q *pgxstore.Queue, statement string) error {
			q.Exec(statement)
			return q.Err()
		},
		Remove: h.remove,
		Damage: h.damage,
		Ahead:  h.setClockAhead,
	}
}

func TestStore(t *testing.T) {
	straight, pooled := services.Pooled(t)
	services.Hurry(t, straight)
	var ways sqlsuite.Ways
	run := func(name, dsn string, change func(*pgxpool.Config), handle, queue func() func(string) bool) {
		t.Run(name, func(t *testing.T) {
			shops := newLent(openPool(t, dsn, change))
			t.Run("handle", func(t *testing.T) {
				storetest.Run(t, storetest.Harness[pgx.Tx]{
					Open: func(t testing.TB) storetest.Instance[pgx.Tx] { return shops.Open(t).directInstance() },
					Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true},
					Only: handle(),
				})
			})
			t.Run("queue", func(t *testing.T) {
				storetest.Run(t, storetest.Harness[*pgxstore.Queue]{
					Open: func(t testing.TB) storetest.Instance[*pgxstore.Queue] { return shops.Open(t).queuedInstance() },
					Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Gather: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, Positions: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true},
					Only: queue(),
				})
			})
		})
	}
	run("straight", straight, useTracer(&ways),
		func() func(string) bool { return ways.First(nil) }, func() func(string) bool { ways.Further(); return sqlsuite.OneLine })
	if sqlsuite.OneWay() {
		return
	}
	if sqlsuite.EveryWay() {
		run("straight_unnamed", straight, useUnnamed, ways.Further, ways.Further)
	}
	run("trap_108_through_a_pooler_by_transaction", pooled, useUnnamed, ways.Further, ways.Further)
	run("trap_108_through_a_pooler_without_descriptions", pooled, useTextArgs, ways.Further, ways.Further)
}
