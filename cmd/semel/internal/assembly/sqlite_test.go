//go:build unix

package assembly

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestANewDatabaseFile(t *testing.T) {
	t.Run("is_for_its_owner_alone_with_the_files_beside_it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "shop.db")
		tables, database, err := openSQLite(&policy.SQLite{Path: path}, openOptions{create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = database.Close() })
		if _, err := tables.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, beside := range []string{"", "-wal", "-shm"} {
			info, err := os.Stat(path + beside)
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); mode != 0o600 {
				t.Errorf("%s has the permissions %o, want 600", info.Name(), mode)
			}
		}
	})
	t.Run("behind_a_link_to_no_file_is_for_its_owner_alone", func(t *testing.T) {
		folder := t.TempDir()
		path, target := filepath.Join(folder, "shop.db"), filepath.Join(folder, "elsewhere.db")
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		tables, database, err := openSQLite(&policy.SQLite{Path: path}, openOptions{create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = database.Close() })
		if _, err := tables.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("that_is_there_keeps_its_permissions", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "shop.db")
		if err := os.WriteFile(path, nil, 0o640); err != nil {
			t.Fatal(err)
		}
		_, database, err := openSQLite(&policy.SQLite{Path: path}, openOptions{create: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = database.Close() })
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}

func TestUniqueConstraintsAreFound(t *testing.T) {
	_, opened, err := openSQLite(&policy.SQLite{Path: filepath.Join(t.TempDir(), "shop.db")}, openOptions{create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	if _, err := opened.(*sqlite).db.Exec(`create table orders (id integer primary key, Number text unique, shop text, day text);
		create unique index by_day on orders (shop, day); create index slow on orders (day);
		create table lines (orders integer, position integer, primary key (orders, position)) without rowid`); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"orders.id": true, "orders.number": true, "Orders.Number": true, "orders.shop, orders.day": true, "orders.shop orders.day": true,
		"lines.orders,lines.position": true, "orders.day": false, "orders.day, orders.shop": false, "number": false, "other.number": false,
		"orders.number, lines.position": false, "by_day": false, "": false,
	} {
		if got, err := opened.hasUnique(t.Context(), name); got != want || err != nil {
			t.Errorf("%q is there: %t, %v, want %t", name, got, err, want)
		}
	}
}
