package handlers

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semeltest"
	"github.com/semel-go/semel/sqlstore"
)

func book(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
	p, err := semel.JSON[struct {
		Account string
		Amount  int64
	}](m)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into accounts values (?1, ?2)
		on conflict (id) do update set balance = balance + ?2`, p.Account, p.Amount)
	return err
}

func TestBook(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)")
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	store, err := sqlstore.SQLite(db, sqlstore.Options{})
	check(t, err)
	_, err = store.Migrate(t.Context())
	check(t, err)
	_, err = db.ExecContext(t.Context(), "create table accounts (id text primary key, balance integer not null)")
	check(t, err)
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[*sql.Tx] {
		_, err := db.ExecContext(t.Context(), "delete from accounts")
		check(t, err)
		return semeltest.Handler[*sql.Tx]{
			Store:    store,
			Handle:   book,
			Messages: []*semel.Message{keyed("a", "payment-1", `{"account":"a","amount":30}`), keyed("b", "payment-2", `{"account":"b","amount":12}`)},
			Effect: func(ctx context.Context) (all string, err error) {
				err = db.QueryRowContext(ctx, `select coalesce(group_concat(id || ' ' || balance, ', '), '')
					from (select id, balance from accounts order by id)`).Scan(&all)
				return all, err
			},
		}
	})
}

// keyed returns a message with a key, as a broker delivers it.
func keyed(key, id, body string) *semel.Message {
	m := semeltest.Message(id, body)
	m.Key = []byte(key)
	return m
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
