// Package httpkey tests idempotency keys of HTTP requests with every store that can keep them.
package httpkey

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// storeFixture is a store of idempotency keys, with functions for the effects of handlers.
type storeFixture struct {
	// newGuard returns a new guard for the store, like the guard of another process.
	newGuard func(httpkey.Config, httpkey.LeaseConfig) (*httpkey.Guard, error)
	// writeEffect writes an effect in a handler's transaction. The function count returns the number of
	// committed effects. With leased keys, both functions are nil, because the effects are in another system.
	writeEffect func(ctx context.Context, name string) error
	count       func(t testing.TB, name string) int
	// singleWriter is true if a request waits for the transaction of another request.
	singleWriter bool
}

func (s *storeFixture) isLeased() bool { return s.writeEffect == nil }

// openers returns, for each kind of store, a function that opens a store.
func openers() map[string]func(testing.TB) *storeFixture {
	return map[string]func(testing.TB) *storeFixture{
		"memory":          func(testing.TB) *storeFixture { return newMemoryFixture(memstore.New()) },
		"memory_leased":   func(testing.TB) *storeFixture { return newLeasedFixture(memstore.NewKeys()) },
		"sqlite":          func(t testing.TB) *storeFixture { return newSQLFixture(t, sqlite(t), true, "?") },
		"sqlite_leased":   func(t testing.TB) *storeFixture { return newLeasedFixture(sqlite(t).store) },
		"postgres":        func(t testing.TB) *storeFixture { return newSQLFixture(t, postgres(t), false, "$1") },
		"postgres_leased": func(t testing.TB) *storeFixture { return newLeasedFixture(postgres(t).store) },
		"pgx":             func(t testing.TB) *storeFixture { return newPgxFixture(t, services.Postgres(t)) },
		"pgx_queued":      func(t testing.TB) *storeFixture { return newQueueFixture(t, services.Postgres(t)) },
		"pgx_leased":      func(t testing.TB) *storeFixture { return newLeasedFixture(openPool(t, services.Postgres(t)).store) },
		"redis_leased":    func(t testing.TB) *storeFixture { return newLeasedFixture(redis(t)) },
	}
}

// guardMaker returns a function that creates guards for a store of markers.
func guardMaker[Tx any](st store.TxStore[Tx]) func(httpkey.Config, httpkey.LeaseConfig) (*httpkey.Guard, error) {
	return func(c httpkey.Config, _ httpkey.LeaseConfig) (*httpkey.Guard, error) { return httpkey.New(st, c) }
}

func newLeasedFixture(keys keystore.Store) *storeFixture {
	return &storeFixture{newGuard: func(c httpkey.Config, l httpkey.LeaseConfig) (*httpkey.Guard, error) {
		l.AllowVolatile = "a test"
		return httpkey.NewLeased(keys, c, l)
	}}
}

func newMemoryFixture(store *memstore.Store) *storeFixture {
	return &storeFixture{
		newGuard: guardMaker[*memstore.Tx](store),
		writeEffect: func(ctx context.Context, name string) error {
			tx, err := httpkey.TxFrom[*memstore.Tx](ctx)
			if err != nil {
				return err
			}
			return tx.Add(name, 1)
		},
		count: func(_ testing.TB, name string) int {
			n, _ := strconv.Atoi(string(store.Get(name)))
			return n
		},
	}
}

// database is a database with a store.
type database struct {
	db    *sql.DB
	store *sqlstore.Store
}

// createTables creates the tables of the store and of the effects.
func (d database) createTables(t testing.TB) database {
	t.Helper()
	t.Cleanup(func() { _ = d.db.Close() })
	must.Get(d.store.Migrate(t.Context()))(t)
	must.Get(d.db.Exec("create table effects (name text not null)"))(t)
	return d
}

func sqlite(t testing.TB) database { return sqliteThat(t, "off") }

// sqliteThat opens a SQLite database with a given value of the setting synchronous.
func sqliteThat(t testing.TB, synchronous string) database {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")"))(t)
	store := must.Get(sqlstore.SQLite(db, sqlstore.Options{}))(t)
	return database{db, store}.createTables(t)
}

func postgres(t testing.TB) database {
	t.Helper()
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	db := must.Get(sql.Open("pgx", dsn))(t)
	store := must.Get(sqlstore.Postgres(db, sqlstore.Options{}))(t)
	return database{db, store}.createTables(t)
}

func newSQLFixture(_ testing.TB, d database, oneWriter bool, place string) *storeFixture {
	return &storeFixture{
		newGuard: guardMaker[*sql.Tx](d.store),
		writeEffect: func(ctx context.Context, name string) error {
			tx, err := httpkey.TxFrom[*sql.Tx](ctx)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "insert into effects values ("+place+")", name)
			return err
		},
		count: func(t testing.TB, name string) (n int) {
			t.Helper()
			must.OK(t, d.db.QueryRow("select count(*) from effects where name = "+place, name).Scan(&n))
			return n
		},
		singleWriter: oneWriter,
	}
}

// pool is a pgx pool with a store.
type pool struct {
	pool  *pgxpool.Pool
	store *pgxstore.Store
}

func openPool(t testing.TB, dsn string) pool {
	t.Helper()
	p := must.Get(pgxpool.New(context.Background(), dsn+"&pool_max_conns=10"))(t)
	t.Cleanup(p.Close)
	store := must.Get(pgxstore.New(p, pgxstore.Options{}))(t)
	must.Get(store.Migrate(t.Context()))(t)
	must.Get(p.Exec(t.Context(), "create table effects (name text not null)"))(t)
	return pool{p, store}
}

func (p pool) count(t testing.TB, name string) (n int) {
	t.Helper()
	must.OK(t, p.pool.QueryRow(context.Background(), "select count(*) from effects where name = $1", name).Scan(&n))
	return n
}

func newPgxFixture(t testing.TB, dsn string) *storeFixture {
	p := openPool(t, dsn)
	return &storeFixture{newGuard: guardMaker[pgx.Tx](p.store), count: p.count, writeEffect: func(ctx context.Context, name string) error {
		tx, err := httpkey.TxFrom[pgx.Tx](ctx)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "insert into effects values ($1)", name)
		return err
	}}
}

func newQueueFixture(t testing.TB, dsn string) *storeFixture {
	p := openPool(t, dsn)
	return &storeFixture{newGuard: guardMaker[*pgxstore.Queue](p.store.Queued()), count: p.count, writeEffect: func(ctx context.Context, name string) error {
		tx, err := httpkey.TxFrom[*pgxstore.Queue](ctx)
		if err != nil {
			return err
		}
		tx.ExecOne("insert into effects values ($1)", name)
		return nil
	}}
}

func redis(t testing.TB) keystore.Store {
	t.Helper()
	c := must.Get(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{services.StartRedis(t).Address()}, DisableCache: true}))(t)
	t.Cleanup(c.Close)
	st := must.Get(redisstore.New(t.Context(), c, redisstore.Options{Prefix: t.Name()}))(t)
	return st
}

func config() httpkey.Config {
	return httpkey.Config{Name: "orders", Caller: func(r *http.Request) string { return r.Header.Get("X-Account") }, Keep: 72 * time.Hour}
}

// lease returns a configuration in which a request with an unknown outcome is repeated.
func lease() httpkey.LeaseConfig { return httpkey.LeaseConfig{Window: leasedkey.Always} }
