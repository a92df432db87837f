// Package sqlite runs the store's suites against SQLite.
package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
	_ "modernc.org/sqlite"
)

const pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)"

// newFile is the path of a database that is not there yet.
func newFile(t testing.TB) string { return filepath.Join(t.TempDir(), "shop.db") }

// openFile opens a database file for the time of the test.
func openFile(t testing.TB, path, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// newStore is a migrated store in a file of its own.
func newStore(t testing.TB) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := openFile(t, newFile(t), pragmas+"&_pragma=foreign_keys(1)")
	return storeOn(t, db), db
}

func storeOn(t testing.TB, db *sql.DB) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSmoke(t *testing.T) {
	s, db := newStore(t)
	if _, err := db.Exec("create table effects (id blob)"); err != nil {
		t.Fatal(err)
	}
	n, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	marks := []semel.Mark{{Scope: n, ID: []byte("a"), As: semel.Applied}, {Scope: n, ID: []byte("b"), As: semel.Parked}, {Scope: n, ID: []byte("c"), As: semel.Applied}}
	for range 2 {
		b, v, err := s.Begin(t.Context(), semel.TxOptions{}, marks)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(v, b.(semel.Broken).Broken())
		if _, err := b.Tx(0).Exec("insert into effects values (?)", "a"); err != nil {
			t.Fatal(err)
		}
		t.Log(b.Commit(t.Context(), semel.Ending{Trim: []int{2}, Rows: []semel.Row{{Mark: 1, State: semel.StateParked, Reason: "x", Message: &semel.Message{Topic: "\xff", Body: []byte("\x00")}}}}))
	}
	t.Log(s.Rows(t.Context(), semel.RowFilter{Bodies: true}))
	t.Log(s.Status(t.Context()))
}
