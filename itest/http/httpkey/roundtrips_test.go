package httpkey

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
)

const insert = "insert into effects values ($1)"

// kind is a way to use PostgreSQL, with two endpoints: one without a guard, and one with a guard.
type kind struct {
	plain, protected http.Handler
}

func status(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func protect(t testing.TB, g *httpkey.Guard, err error, h http.HandlerFunc) http.Handler {
	t.Helper()
	must.OK(t, err)
	return g.ProtectFunc(h)
}

// limitPool limits the pool of a connection string to two connections, unless the string has its own limit.
func limitPool(dsn string) string {
	if strings.Contains(dsn, "pool_max_conns") {
		return dsn
	}
	return dsn + "&pool_max_conns=2"
}

func overPgx(t testing.TB, dsn string) kind {
	t.Helper()
	pool := must.Get(pgxpool.New(context.Background(), limitPool(dsn)))(t)
	t.Cleanup(pool.Close)
	store := must.Get(pgxstore.New(pool, pgxstore.Options{}))(t)
	g, err := httpkey.New[pgx.Tx](store, config())
	return kind{
		plain: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status(w, pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(r.Context(), insert, "plain")
				return err
			}))
		}),
		protected: protect(t, g, err, func(w http.ResponseWriter, r *http.Request) {
			tx, err := httpkey.TxFrom[pgx.Tx](r.Context())
			if err == nil {
				_, err = tx.Exec(r.Context(), insert, "protected")
			}
			status(w, err)
		}),
	}
}

// overQueue is like overPgx, with queued statements.
func overQueue(t testing.TB, dsn string) kind {
	t.Helper()
	k := overPgx(t, dsn)
	pool := must.Get(pgxpool.New(context.Background(), limitPool(dsn)))(t)
	t.Cleanup(pool.Close)
	store := must.Get(pgxstore.New(pool, pgxstore.Options{}))(t)
	g, err := httpkey.New[*pgxstore.Queue](store.Queued(), config())
	k.protected = protect(t, g, err, func(w http.ResponseWriter, r *http.Request) {
		tx, err := httpkey.TxFrom[*pgxstore.Queue](r.Context())
		if err == nil {
			tx.ExecOne(insert, "protected")
		}
		status(w, err)
	})
	return k
}

func overSQL(t testing.TB, dsn string) kind {
	t.Helper()
	dsn, _, _ = strings.Cut(dsn, "&pool_max_conns")
	c := must.Get(pgx.ParseConfig(dsn))(t)
	// By default the driver pings a connection that was unused for a second.
	never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	db := stdlib.OpenDB(*c, never)
	db.SetMaxIdleConns(8)
	t.Cleanup(func() { _ = db.Close() })
	store := must.Get(sqlstore.Postgres(db, sqlstore.Options{}))(t)
	g, err := httpkey.New[*sql.Tx](store, config())
	return kind{
		plain: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tx, err := db.BeginTx(r.Context(), nil)
			if err == nil {
				_, err = tx.ExecContext(r.Context(), insert, "plain")
			}
			if err == nil {
				err = tx.Commit()
			}
			status(w, err)
		}),
		protected: protect(t, g, err, func(w http.ResponseWriter, r *http.Request) {
			tx, err := httpkey.TxFrom[*sql.Tx](r.Context())
			if err == nil {
				_, err = tx.ExecContext(r.Context(), insert, "protected")
			}
			status(w, err)
		}),
	}
}

func TestRoundTripsOfAProtectedRequest(t *testing.T) {
	dsn := services.Postgres(t)
	openPool(t, dsn) // openPool creates the tables
	for _, c := range []struct {
		name string
		open func(testing.TB, string) kind
		more int // additional round trips because of the guard
		copy int // round trips for a request that is answered from the store
	}{
		{"pgx", overPgx, 0, 4},
		{"pgx_queued", overQueue, -1, 4},
		{"database_sql", overSQL, 2, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy := pgproxy.Start(t, dsn)
			k := c.open(t, proxy.DSN())
			trips := func(h http.Handler, key string) int {
				proxy.ResetCounts()
				r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("tea"))
				r.Header.Set("X-Account", c.name)
				r.Header.Set(httpkey.Header, `"`+key+`"`)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusCreated {
					t.Fatalf("%d: %s", w.Code, w.Body)
				}
				return proxy.Counts().RoundTrips
			}
			for _, key := range []string{"a", "a", "b", "b", "c"} { // these requests prepare the statements
				trips(k.plain, key)
				trips(k.protected, key)
			}
			plain, fresh, copied := trips(k.plain, "d"), trips(k.protected, "d"), trips(k.protected, "d")
			if fresh != plain+c.more || copied != c.copy {
				t.Errorf("%d round trips without a guard, %d with it, %d of a copy; want %d more, and %d", plain, fresh, copied, c.more, c.copy)
			}
		})
	}
}
