package assembly

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/sqlstore"
)

var errNoDatabase = errors.New("there is no database")

// openSQLite opens the database file, which need not exist if it may be
// created. Nothing is read or written yet.
func openSQLite(path string, create bool) (*sql.DB, error) {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a directory; name a database file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file; name a database file", path)
	case errors.Is(err, os.ErrNotExist) && !create:
		return nil, fmt.Errorf("%s: %w", path, errNoDatabase)
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("%w; create the folder first", err)
		}
	case err != nil:
		return nil, err
	}
	return sql.Open("sqlite", address(path))
}

// address is the name of the file with the settings that every connection needs.
func address(path string) string {
	escape := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")
	return "file:" + escape.Replace(filepath.ToSlash(path)) +
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)"
}

// openNothing opens a store on a database that is empty and stays so.
func openNothing(p *policy.Store) (*Store, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.SQLite(db, sqlstore.Options{Prefix: p.SQLite.Prefix})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", p.Name, err), db.Close())
	}
	return &Store{Store: store, db: db, policy: p}, nil
}

// violates reports whether an error is the violation of the unique constraint
// on these columns, written as SQLite reports it: "table.column, table.column".
func violates(columns string) func(error) bool {
	want := spaceless(columns)
	return func(err error) bool {
		var coded *sqlite.Error
		if !errors.As(err, &coded) || coded.Code() != sqlite3.SQLITE_CONSTRAINT_UNIQUE && coded.Code() != sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
			return false
		}
		_, named, _ := strings.Cut(coded.Error(), "UNIQUE constraint failed: ")
		named, _, _ = strings.Cut(named, " (")
		return strings.EqualFold(spaceless(named), want)
	}
}

func spaceless(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, ",", " ")), ",")
}
