package handlers

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semeltest"
	"github.com/semel-go/semel/sqlstore"
)

func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=foreign_keys(1)")
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	store, err := sqlstore.SQLite(db, sqlstore.Options{})
	must(t, err)
	_, err = store.Migrate(t.Context())
	must(t, err)
	_, err = db.ExecContext(t.Context(), "create table accounts (id text primary key, balance integer not null)")
	must(t, err)
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[*sql.Tx] {
		_, err := db.ExecContext(t.Context(), "delete from accounts")
		must(t, err)
		return semeltest.Handler[*sql.Tx]{
			Store:    store,
			Handle:   book,
			Messages: []*semel.Message{keyedMessage("a", "payment-1", `{"account":"a","amount":30}`), keyedMessage("b", "payment-2", `{"account":"b","amount":12}`)},
			Effect: func(ctx context.Context) (all string, err error) {
				err = db.QueryRowContext(ctx, `select coalesce(group_concat(id || ' ' || balance, ', '), '')
					from (select id, balance from accounts order by id)`).Scan(&all)
				return all, err
			},
		}
	})
}

// keyedMessage returns a message with a key, as a broker delivers it.
func keyedMessage(key, id, body string) *semel.Message {
	m := semeltest.Message(id, body)
	m.Key = []byte(key)
	return m
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Payment and book are those of docs/start/first-hour-go.md.
type Payment struct {
	Account string
	Amount  int64
}

// book is the handler. Its writes and the marker of the message are in one transaction.
func book(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
	payment, err := semel.JSON[Payment](m)
	if err != nil {
		return err // not a payment: parked, not retried
	}
	_, err = tx.ExecContext(ctx, `insert into accounts values (?1, ?2)
		on conflict (id) do update set balance = balance + ?2`, payment.Account, payment.Amount)
	return err
}
