package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

const impatient = "?_pragma=busy_timeout(0)&_pragma=synchronous(off)" + foreignKeys

func makeMarks(t testing.TB, s *sqlstore.Store, ids ...string) []store.Mark {
	t.Helper()
	return sqlsuite.Marks(t, s, "", ids...)
}

func isDown(t testing.TB, s store.TxStore[*sql.Tx], err error, says string) {
	t.Helper()
	sqlsuite.Is(t, s, err, store.ClassDown, says)
}

func TestALockedDatabase(t *testing.T) {
	t.Run("a_writer_elsewhere_makes_begin_fail_at_once", func(t *testing.T) {
		path := newFile(t)
		db := openFile(t, path, impatient)
		s := storeOn(t, db)
		i := instanceOn(t, s, db)
		all := makeMarks(t, s, "a", "b")
		other, err := openFile(t, path, impatient).Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.ExecContext(t.Context(), "begin immediate"); err != nil {
			t.Fatal(err)
		}
		_, _, err = sqlsuite.Attempt(t, i, all)
		isDown(t, s, err, "busy_timeout")
		isDown(t, s, s.SavePosition(t.Context(), "c", "l", source.Position{}), "busy_timeout")
		if _, err := other.ExecContext(t.Context(), "rollback"); err != nil {
			t.Fatal(err)
		}
		sqlsuite.Works(t, i, all)
	})
	t.Run("a_reader_elsewhere_makes_commit_fail_for_certain", func(t *testing.T) {
		path := newFile(t)
		db := openFile(t, path, impatient)
		s := storeOn(t, db)
		i := instanceOn(t, s, db)
		all := makeMarks(t, s, "a", "b")
		reader, err := openFile(t, path, impatient).Query("select name from once union all select 'x'")
		if err != nil {
			t.Fatal(err)
		}
		reader.Next()
		r, _, err := sqlsuite.Attempt(t, i, all)
		if err != nil || r.Outcome != store.NotCommitted || r.Class != store.ClassDown {
			t.Errorf("got %+v, %v, want not committed, down", r, err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		sqlsuite.Works(t, i, all)
	})
}

func TestADatabaseThatCannotBeWritten(t *testing.T) {
	t.Run("trap_140_a_read_only_database_leaves_nothing", func(t *testing.T) {
		path := newFile(t)
		db := openFile(t, path, impatient)
		i := instanceOn(t, storeOn(t, db), db)
		all := makeMarks(t, i.Store.(*sqlstore.Store), "a", "b")
		reading := openFile(t, path, impatient+"&mode=ro")
		s, err := sqlstore.SQLite(reading, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("the check needs to write: %v", err)
		}
		if applied, err := s.Migrate(t.Context()); len(applied) != 0 || err != nil {
			t.Errorf("a complete schema was migrated: %v, %v", applied, err)
		}
		_, _, err = s.Begin(t.Context(), store.TxOptions{}, all)
		isDown(t, s, err, "writable")
		sqlsuite.Works(t, i, all)
	})
	t.Run("trap_140_a_full_disk_leaves_nothing", func(t *testing.T) {
		path := newFile(t)
		db := openFile(t, path, impatient)
		i := instanceOn(t, storeOn(t, db), db)
		full := openFile(t, path, impatient+"&_pragma=max_page_count(60)")
		small := instanceOn(t, storeOn(t, full), full)
		filling := small
		filling.Effect = func(ctx context.Context, tx *sql.Tx, name string) error {
			_, err := tx.ExecContext(ctx, "insert into effects values (zeroblob(1000000))")
			return err
		}
		all := makeMarks(t, i.Store.(*sqlstore.Store), "a", "b")
		for range 3 {
			_, _, err := sqlsuite.Attempt(t, filling, all)
			if err == nil || small.Store.Classify(err) != store.ClassDown {
				t.Fatalf("got %v, want a failure of the store", err)
			}
		}
		sqlsuite.Works(t, i, all)
		var left int
		if err := db.QueryRow("select count(*) from effects").Scan(&left); err != nil || left != 2 {
			t.Errorf("%d effects are left, %v", left, err)
		}
	})
	t.Run("a_path_without_folder_is_named", func(t *testing.T) {
		db := openFile(t, newFile(t)+"/missing/shop.db", impatient)
		_, err := sqlstore.SQLite(db, sqlstore.Options{})
		if err == nil {
			t.Fatal("there is no error")
		}
	})
}

// halfDone returns an open batch of two messages. Only the first message has written its effect.
func halfDone(t *testing.T) (storetest.Instance[*sql.Tx], []store.Mark, store.Batch[*sql.Tx]) {
	t.Helper()
	i := instance(t, pragmas+foreignKeys)
	all := sqlsuite.Marks(t, i.Store, "", "a", "b")
	b, _ := sqlsuite.Begin(t, i.Store, store.TxOptions{}, all)
	if err := i.Effect(t.Context(), b.Tx(0), "a"); err != nil {
		t.Fatal(err)
	}
	return i, all, b
}

func TestSwallowedRollbacks(t *testing.T) {
	t.Run("law_12_a_statement_that_rolls_back_breaks_the_batch", func(t *testing.T) {
		i, all, b := halfDone(t)
		if _, err := b.Tx(0).Exec("insert or rollback into once values ('there')"); err == nil {
			t.Fatal("the statement did not fail")
		}
		if !b.(store.TxStatus).TxAborted() {
			t.Error("the batch does not know that it is broken")
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassAborted {
			t.Errorf("the commit says %+v, want not committed, aborted", r)
		}
		sqlsuite.Works(t, i, all)
	})
	t.Run("a_deferred_violation_fails_the_commit_for_good", func(t *testing.T) {
		i := instance(t, pragmas+foreignKeys)
		b, _, err := i.Store.Begin(t.Context(), store.TxOptions{}, makeMarks(t, i.Store.(*sqlstore.Store), "a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"create table child (parent integer references semel_guard_end (number) deferrable initially deferred)",
			"insert into child values (7)",
		} {
			if _, err := b.Tx(0).Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassPermanent {
			t.Errorf("the commit says %+v, want not committed, permanent", r)
		}
		sqlsuite.Works(t, i, makeMarks(t, i.Store.(*sqlstore.Store), "a"))
	})
}

func TestForeignKeys(t *testing.T) {
	t.Run("a_store_without_foreign_keys_says_one_message_a_batch", func(t *testing.T) {
		for options, want := range map[string]int{pragmas: 1, pragmas + foreignKeys: 0} {
			if got := storeOn(t, openFile(t, newFile(t), options)).Limits().Batch; got != want {
				t.Errorf("the limit is %d, want %d", got, want)
			}
		}
	})
	t.Run("a_connection_that_lost_its_foreign_keys_is_refused", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		s := storeOn(t, db)
		all := makeMarks(t, s, "a")
		db.SetMaxOpenConns(1)
		exec(t, db, "pragma foreign_keys = off")
		_, _, err := s.Begin(t.Context(), store.TxOptions{}, all)
		isDown(t, s, err, "foreign_keys")
	})
}

func TestWritersOfTwoProcesses(t *testing.T) {
	t.Run("trap_117_writers_beside_each_other_never_fail_with_a_stale_snapshot", func(t *testing.T) {
		path := newFile(t)
		var all [2]storetest.Instance[*sql.Tx]
		for n := range all {
			db := openFile(t, path, pragmas+foreignKeys)
			all[n] = instanceOn(t, storeOn(t, db), db)
		}
		ids := makeMarks(t, all[0].Store.(*sqlstore.Store), "a", "b", "c", "d", "e")
		var ended sync.WaitGroup
		for n := range 6 {
			ended.Go(func() { readsThenWrites(t, all[n%2], ids) })
		}
		ended.Wait()
		for _, m := range ids {
			if n := all[0].Count(t, string(m.ID)); n != 1 {
				t.Errorf("%d effects of %s, want 1", n, m.ID)
			}
		}
	})
}

// readsThenWrites delivers each message to a handler that reads before it writes.
func readsThenWrites(t *testing.T, i storetest.Instance[*sql.Tx], ids []store.Mark) {
	for n := range ids {
		b, v, err := i.Store.Begin(t.Context(), store.TxOptions{}, ids[n:n+1])
		if err != nil {
			t.Error(err)
			return
		}
		if v[0].Kind == store.Fresh {
			var there int
			read := b.Tx(0).QueryRow("select count(*) from effects").Scan(&there)
			if err := errors.Join(read, i.Effect(t.Context(), b.Tx(0), string(ids[n].ID))); err != nil {
				t.Error(err)
			}
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Error(fmt.Sprint(r))
		}
	}
}
