// Package sqlite runs the conformance suites of stores against SQLite.
package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/sqlstore"
	_ "modernc.org/sqlite"
)

const pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)"

// newFile returns a path for a new database.
func newFile(t testing.TB) string { return filepath.Join(t.TempDir(), "shop.db") }

// openFile opens a database file for the duration of the test.
func openFile(t testing.TB, path, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
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
