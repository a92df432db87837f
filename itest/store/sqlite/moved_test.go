package sqlite

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// The suffixes of the files that belong to one database.
var beside = []string{"", "-wal", "-shm"}

func moveFile(t testing.TB, from, to string) {
	t.Helper()
	for _, end := range beside {
		if err := os.Rename(from+end, to+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func deleteFile(t testing.TB, path string) {
	t.Helper()
	for _, end := range beside {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func TestAFileThatIsTakenAway(t *testing.T) {
	prepare := func(t *testing.T) (path string, i storetest.Instance[*sql.Tx], s *sqlstore.Store, all []store.Mark) {
		path = newFile(t)
		db := openFile(t, path, pragmas+foreignKeys)
		s = storeOn(t, db)
		i = instanceOn(t, s, db)
		sqlsuite.Works(t, i, makeMarks(t, s, "before"))
		return path, i, s, makeMarks(t, s, "a", "b")
	}
	t.Run("trap_T111_a_deleted_file_is_down_and_no_file_is_made_in_its_place", func(t *testing.T) {
		path, i, s, all := prepare(t)
		deleteFile(t, path)
		_, _, err := sqlsuite.Attempt(t, i, all)
		isDown(t, s, err, path)
		isDown(t, s, s.SavePosition(t.Context(), "c", "l", source.Position{}), path)
		_, err = s.Scope(t.Context(), "another", "", 0)
		isDown(t, s, err, path)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the path is not empty: %v", err)
		}
	})
	t.Run("trap_T111_a_commit_into_a_deleted_file_is_not_answered_as_one", func(t *testing.T) {
		path, i, s, all := prepare(t)
		b, _, err := i.Store.Begin(t.Context(), store.TxOptions{}, all)
		if err != nil {
			t.Fatal(err)
		}
		deleteFile(t, path)
		r := b.Commit(t.Context(), store.Ending{})
		if r.Outcome != store.CommitUnknown || r.Class != store.ClassDown {
			t.Errorf("got %+v, want unknown, down", r)
		}
		isDown(t, s, r.Err, path)
	})
	t.Run("trap_T111_a_file_that_is_moved_back_is_gone_on_with", func(t *testing.T) {
		path, i, s, all := prepare(t)
		moveFile(t, path, path+".moved")
		_, _, err := sqlsuite.Attempt(t, i, all)
		isDown(t, s, err, path)
		moveFile(t, path+".moved", path)
		sqlsuite.Works(t, i, all)
	})
	t.Run("trap_T111_another_file_is_not_taken_for_the_first", func(t *testing.T) {
		path, i, s, all := prepare(t)
		moveFile(t, path, path+".moved")
		other := openFile(t, path, pragmas+foreignKeys)
		storeOn(t, other)
		_, _, err := sqlsuite.Attempt(t, i, all)
		isDown(t, s, err, "replaced")
		var n int
		if err := other.QueryRow("select count(*) from semel_markers").Scan(&n); err != nil || n != 0 {
			t.Errorf("the other file has %d markers, %v", n, err)
		}
	})
}

func TestADatabaseInMemoryIsNoStore(t *testing.T) {
	t.Run("K1_memory_as_truth_it_would_forget_what_was_applied", func(t *testing.T) {
		for _, address := range []string{":memory:", "file::memory:?cache=shared", "file:shop?mode=memory&cache=shared", ""} {
			db, err := sql.Open("sqlite", address)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sqlstore.SQLite(db, sqlstore.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Migrate(t.Context()); !errors.Is(err, semel.ErrUnsupported) {
				t.Errorf("%q: %v", address, err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
