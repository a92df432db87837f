package sqlite

import (
	"os"
	"testing"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
)

// filesContaining returns the names of the database's files that contain a word in one of the given encodings.
func filesContaining(t testing.TB, path string, forms [][]byte) (found []string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-journal"} {
		text, err := os.ReadFile(path + suffix)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if sqlsuite.Has(text, forms) {
			found = append(found, "shop.db"+suffix)
		}
	}
	return found
}

// The test searches the bytes of the database file and of its log, and ignores tables and columns.
func TestNothingIsLeftInAFile(t *testing.T) {
	for name, options := range map[string]string{
		"with_a_write-ahead_log":  pragmas + foreignKeys,
		"with_a_rollback_journal": "?_pragma=busy_timeout(5000)&_pragma=synchronous(off)" + foreignKeys,
	} {
		t.Run(name, func(t *testing.T) {
			sqlsuite.NothingIsLeft(t, func(t testing.TB) sqlsuite.Personal {
				path := newFile(t)
				s := storeOn(t, openFile(t, path, options))
				return sqlsuite.Personal{Store: s, Where: func(t testing.TB, forms [][]byte) []string { return filesContaining(t, path, forms) }}
			})
		})
	}
}

// A result that was never moved within the file is overwritten without a vacuum.
func TestWhatIsErasedIsOverwritten(t *testing.T) {
	t.Run("P4_a_result_that_lay_where_it_was_written", func(t *testing.T) {
		path := newFile(t)
		db := openFile(t, path, pragmas+foreignKeys)
		db.SetMaxOpenConns(1)
		s := storeOn(t, db)
		marks := sqlsuite.Marks(t, s, "shop", "a", "b")
		b, _ := sqlsuite.Begin(t, s, store.TxOptions{}, marks)
		for i, word := range []string{"Ana-Vukovic", "Bo-Lindqvist"} {
			if err := s.KeepResult(t.Context(), b.Tx(i), admin.ResultOf{Scope: marks[i].Scope, ID: marks[i].ID}, []byte(word)); err != nil {
				t.Fatal(err)
			}
		}
		b.Commit(t.Context(), store.Ending{})
		o := admin.Erasing{Filter: admin.ErasureFilter{IDs: []string{"a"}}, After: admin.ErasureMark{Part: admin.ErasureResults}, Act: store.Act{Verb: "erase", Who: "ana"}}
		if done, err := s.Erase(t.Context(), o); err != nil || done.Results != 1 {
			t.Fatal(done, err)
		}
		if err := s.Scrub(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if found := filesContaining(t, path, sqlsuite.Forms("Ana-Vukovic")); len(found) > 0 {
			t.Errorf("it stands in %q still", found)
		}
		if found := filesContaining(t, path, sqlsuite.Forms("Bo-Lindqvist")); len(found) == 0 {
			t.Error("the other is gone, too")
		}
		var on int
		if err := db.QueryRow("pragma secure_delete").Scan(&on); err != nil || on != 0 {
			t.Errorf("the connection overwrites what others delete: %d, %v", on, err)
		}
	})
	t.Run("P4_a_log_that_somebody_reads_is_told", func(t *testing.T) {
		path := newFile(t)
		s := storeOn(t, openFile(t, path, "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10)"+foreignKeys))
		reader, err := openFile(t, path, pragmas).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reader.Rollback() }()
		var n int
		if err := reader.QueryRow("select count(*) from semel_acts").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := s.Record(t.Context(), store.Act{Verb: "erase", Who: "ana"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Scrub(t.Context(), false); err == nil {
			t.Error("the log could not be emptied, and no error reports it")
		}
	})
}
