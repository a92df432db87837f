package orm

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/house/pages"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// database returns a new database with the accounts a, b and c. The balance of c may not become negative.
func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	dsn := os.Getenv("SEMEL_POSTGRES")
	if dsn == "" {
		t.Fatal("SEMEL_POSTGRES is not set: run scripts/services with postgres -- go test ./itest/store/orm")
	}
	name := "semel_" + strings.ToLower(rand.Text())
	execute(t, dsn, "create database "+name)
	t.Cleanup(func() { execute(t, dsn, "drop database if exists "+name+" with (force)") })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	pool, err := pgxpool.New(context.Background(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	execute(t, u.String(), "create table accounts (id text primary key, balance bigint not null)", "insert into accounts values ('a', 0), ('b', 0)")
	return pool
}

func execute(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// newPayments returns a source with ten payments of 1 for account a and ten payments of 2 for account b. Each
// payment is delivered twice.
func newPayments(t *testing.T) source.Source {
	t.Helper()
	var text strings.Builder
	for range 2 {
		for i := range 10 {
			fmt.Fprintf(&text, `{"specversion":"1.0","id":"a%d","source":"shop","type":"payment","data":{"account":"a","amount":1}}`+"\n", i)
			fmt.Fprintf(&text, `{"specversion":"1.0","id":"b%d","source":"shop","type":"payment","data":{"account":"b","amount":2}}`+"\n", i)
		}
	}
	path := filepath.Join(t.TempDir(), "payments.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file.Open(path, file.Options{})
}

func wantOnce(t *testing.T, pool *pgxpool.Pool, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var a, b int64
	if err := pool.QueryRow(t.Context(), "select (select balance from accounts where id = 'a'), (select balance from accounts where id = 'b')").Scan(&a, &b); err != nil || a != 10 || b != 20 {
		t.Errorf("the balances are %d and %d (%v), want 10 and 20", a, b, err)
	}
}

func TestEveryLibraryAppliesAPaymentOnce(t *testing.T) {
	t.Run("pgx", func(t *testing.T) {
		pool := database(t)
		wantOnce(t, pool, WithPGX(t.Context(), pool, newPayments(t)))
	})
	t.Run("queue", func(t *testing.T) {
		pool := database(t)
		wantOnce(t, pool, WithQueue(t.Context(), newMigratedStore(t, pool), newPayments(t)))
	})
	for name, apply := range map[string]func(db *sql.DB) func(context.Context, *sql.Tx, Payment) error{
		"database_sql": func(*sql.DB) func(context.Context, *sql.Tx, Payment) error { return BySQL },
		"sqlx":         func(*sql.DB) func(context.Context, *sql.Tx, Payment) error { return BySQLX },
		"ent":          func(*sql.DB) func(context.Context, *sql.Tx, Payment) error { return ByEnt },
		"gorm": func(db *sql.DB) func(context.Context, *sql.Tx, Payment) error {
			g, err := gorm.Open(postgres.New(postgres.Config{Conn: db}))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, tx *sql.Tx, p Payment) error { return ByGORM(ctx, g, tx, p) }
		},
		"bun": func(db *sql.DB) func(context.Context, *sql.Tx, Payment) error {
			b := bun.NewDB(db, pgdialect.New())
			return func(ctx context.Context, tx *sql.Tx, p Payment) error { return ByBun(ctx, b, tx, p) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := database(t)
			db := stdlib.OpenDBFromPool(pool)
			defer db.Close()
			wantOnce(t, pool, WithSQL(t.Context(), db, newPayments(t), apply(db)))
		})
	}
}

func newMigratedStore(t *testing.T, pool *pgxpool.Pool) *pgxstore.Store {
	t.Helper()
	store, err := pgxstore.New(pool, pgxstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestACallbackParksItsMessageAlone(t *testing.T) {
	pool := database(t)
	st := newMigratedStore(t, pool)
	billing, err := consumer.New(st.Queued(), WithCallback, consumer.Config{Name: "billing", Identity: identity.CloudEvents(), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	message := func(id, body string) *semel.Message {
		return &semel.Message{Attributes: semel.Attributes{ID: id, Source: "shop"}, Body: []byte(body)}
	}
	if _, err := billing.ProcessAll(t.Context(), []*semel.Message{message("1", `{"account":"a","amount":10}`),
		message("2", `{"account":"b","amount":-1}`), message("3", `{"account":"b","amount":20}`)}); err != nil {
		t.Fatal(err)
	}
	wantOnce(t, pool, billing.Close(t.Context()))
	rows, err := st.Rows(t.Context(), store.RowFilter{IDs: []string{"2"}})
	if err != nil || len(rows) != 1 || rows[0].Reason != "overdrawn" {
		t.Errorf("the rows are %+v (%v)", rows, err)
	}
}

// TestTheDocumentShowsTheseLines checks that docs/guides/postgres.md shows the code of this package.
func TestTheDocumentShowsTheseLines(t *testing.T) {
	pages.Shows(t, "../../../docs/guides/postgres.md", 9, pages.Read(t, "pgx.go", "sql.go", "libraries.go"))
}
