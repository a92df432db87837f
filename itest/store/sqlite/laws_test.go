package sqlite

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/storetest"
)

// instance returns a new store and a table of effects without a unique key.
func instance(t testing.TB, options string) storetest.Instance[*sql.Tx] {
	t.Helper()
	db := openMigrated(t, options)
	t.Cleanup(func() { sound(t, db) })
	return instanceOn(t, storeOn(t, db), db)
}

// templates contains database files with Semel's tables, by the options of their connections.
var templates = struct {
	sync.Mutex
	files map[string][]byte
}{files: map[string][]byte{}}

// openMigrated opens a new database file in which Semel's tables exist. The file is a copy of a template, because
// hundreds of tests need such a file, and creating the tables took a third of their time.
func openMigrated(t testing.TB, options string) *sql.DB {
	t.Helper()
	templates.Lock()
	defer templates.Unlock()
	if templates.files[options] == nil {
		first := newFile(t)
		db := openFile(t, first, options)
		storeOn(t, db)
		err := db.Close()
		if err == nil {
			templates.files[options], err = os.ReadFile(first)
		}
		if _, left := os.Stat(first + "-wal"); err != nil || left == nil {
			t.Fatalf("the file is not whole: %v, %v", err, left)
		}
	}
	path := newFile(t)
	if err := os.WriteFile(path, templates.files[options], 0o600); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path, options)
}

// sound checks what must hold after every test: no connection is in use, no guard row is left, and the file
// is intact.
func sound(t testing.TB, db *sql.DB) {
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are held", n)
	}
	var guards int
	var whole string
	if err := db.QueryRow("select count(*) from semel_guard").Scan(&guards); err != nil || guards != 0 {
		t.Errorf("%d guards are open, %v", guards, err)
	}
	if err := db.QueryRow("pragma integrity_check").Scan(&whole); err != nil || whole != "ok" {
		t.Errorf("the file is not whole: %s, %v", whole, err)
	}
}

func instanceOn(t testing.TB, s *sqlstore.Store, db *sql.DB) storetest.Instance[*sql.Tx] {
	t.Helper()
	exec(t, db, "create table if not exists effects (name blob not null)")
	exec(t, db, "create index if not exists effects_name on effects (name)")
	exec(t, db, "create table if not exists once (name text primary key)")
	exec(t, db, "insert into once values ('there') on conflict do nothing")
	return storetest.Instance[*sql.Tx]{
		Store:  s,
		Agrees: func(t testing.TB) { sqlsuite.Agrees(t, s) },
		Effect: func(ctx context.Context, tx *sql.Tx, name string) error {
			_, err := tx.ExecContext(ctx, "insert into effects values (?)", []byte(name))
			return err
		},
		Count: func(t testing.TB, name string) int { return count(t, db, name) },
		Spoil: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "insert into once values ('there')")
			return err
		},
		End: func(tx *sql.Tx, commit bool) error {
			if commit {
				return tx.Commit()
			}
			return tx.Rollback()
		},
		Send: func(ctx context.Context, tx *sql.Tx, statement string) error {
			_, err := tx.ExecContext(ctx, statement)
			return err
		},
		Remove: func(t testing.TB, number int64) {
			exec(t, db, "delete from semel_inbox where number = ?", number)
		},
		Ahead: func(t testing.TB, by time.Duration) {
			exec(t, db, "update semel_inbox set received_at = received_at + ?1, changed_at = changed_at + ?1, due_at = due_at + ?1, locked_until = locked_until + ?1", by.Milliseconds())
			exec(t, db, "update semel_generation_states set fenced_until = fenced_until + ?", by.Milliseconds())
			exec(t, db, "update semel_generation_fences set until = until + ?", by.Milliseconds())
		},
		Damage: func(t testing.TB, number int64) {
			exec(t, db, "update semel_inbox set envelope = '{', finished = 'many', partition = x'00' where number = ?", number)
		},
	}
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, db *sql.DB, name string) (n int) {
	t.Helper()
	if err := db.QueryRow("select count(*) from effects where name = ?", []byte(name)).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

const foreignKeys = "&_pragma=foreign_keys(1)"

func TestSQLiteKeepsTheLaws(t *testing.T) {
	const usual = "with a write-ahead log"
	for name, options := range map[string]string{
		usual:                     pragmas + foreignKeys,
		"with a rollback journal": "?_pragma=busy_timeout(5000)&_pragma=synchronous(off)" + foreignKeys,
		"with immediate begins":   pragmas + foreignKeys + "&_txlock=immediate",
		"without foreign keys":    pragmas,
	} {
		if sqlsuite.OneWay() && name != usual {
			continue
		}
		var only func(name string) bool
		if name != usual {
			only = sqlsuite.OneLine
		}
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Harness[*sql.Tx]{
				Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return instance(t, options) },
				Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, OneWriter: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true},
				Only: only,
			})
		})
	}
}
