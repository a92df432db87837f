package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
	"modernc.org/sqlite"
)

// counter opens connections that count their statements, including BEGIN, COMMIT and ROLLBACK. With SQLite, a statement
// is a function call and not a round trip.
type counter struct {
	path   string
	n      atomic.Int64 // number of statements
	opened atomic.Int64 // number of connections
	// The number of statements that were prepared for repeated use.
	prepared atomic.Int64
	// If not nil, the function connected is called for each new connection, with the number of connections so far.
	connected func(n int64)
	// If not nil, the function queried is called with the text of each query that has begun.
	queried func(text string)
	// If not nil, the function committed is called after a successful COMMIT, and the caller of COMMIT gets the result
	// of committed.
	committed func() error
}

func (c *counter) Driver() driver.Driver { return &sqlite.Driver{} }

func (c *counter) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open("file:" + c.path + pragmas + foreignKeys)
	if err != nil {
		return nil, err
	}
	if n := c.opened.Add(1); c.connected != nil {
		c.connected(n)
	}
	return countedConn{conn.(fullConn), c}, nil
}

type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.Validator
	driver.SessionResetter
}

type countedConn struct {
	fullConn
	counter *counter
}

func (c countedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.counter.n.Add(1)
	tx, err := c.fullConn.BeginTx(ctx, o)
	return countedTx{tx, c.counter}, err
}

func (c countedConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	c.counter.n.Add(1)
	return c.fullConn.ExecContext(ctx, q, args)
}

func (c countedConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c.counter.n.Add(1)
	rows, err := c.fullConn.QueryContext(ctx, q, args)
	if c.counter.queried != nil {
		c.counter.queried(q)
	}
	return rows, err
}

func (c countedConn) PrepareContext(ctx context.Context, q string) (driver.Stmt, error) {
	stmt, err := c.fullConn.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	c.counter.prepared.Add(1)
	return countedStmt{stmt.(fullStmt), q, c.counter}, nil
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countedStmt struct {
	fullStmt
	text    string
	counter *counter
}

func (s countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.counter.n.Add(1)
	return s.fullStmt.ExecContext(ctx, args)
}

func (s countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.counter.n.Add(1)
	rows, err := s.fullStmt.QueryContext(ctx, args)
	if s.counter.queried != nil {
		s.counter.queried(s.text)
	}
	return rows, err
}

type countedTx struct {
	driver.Tx
	counter *counter
}

func (t countedTx) Commit() error {
	t.counter.n.Add(1)
	err := t.Tx.Commit()
	if err == nil && t.counter.committed != nil {
		err = t.counter.committed()
	}
	return err
}

func (t countedTx) Rollback() error { t.counter.n.Add(1); return t.Tx.Rollback() }

func TestStatementsOfABatch(t *testing.T) {
	c := &counter{path: newFile(t)}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	s := storeOn(t, db)
	exec(t, db, "create table effects (name blob not null)")
	scope, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	row := store.Row{State: store.StateParked, Message: &semel.Message{}}
	for _, batch := range []struct {
		name        string
		first, last int // range of ids; an id below the highest id so far is a duplicate
		ending      store.Ending
		want        int64
	}{
		{"100 fresh messages: the effects and 5", 0, 100, store.Ending{}, 100 + 5},
		{"50 duplicates and 50 fresh: what became of them in pieces of 20, 4 and 1", 50, 150, store.Ending{}, 50 + 5 + 2 + 2 + 2},
		{"only duplicates: one more", 0, 100, store.Ending{}, 6},
		{"500 fresh: the marks are one statement", 150, 650, store.Ending{}, 500 + 5},
		{"501 fresh: they are two", 650, 1151, store.Ending{}, 501 + 6},
		{"any number of trims is one more", 1151, 1251, store.Ending{Trim: []int{90, 91, 92}}, 97 + 6},
		{"a row is one, and one for the marker if its outcome differs", 1251, 1252, store.Ending{Rows: []store.Row{row}}, 1 + 7},
		{"one message", 1252, 1253, store.Ending{}, 1 + 5},
	} {
		t.Run(batch.name, func(t *testing.T) {
			var marks []store.Mark
			for i := batch.first; i < batch.last; i++ {
				marks = append(marks, store.Mark{Scope: scope, ID: fmt.Append(nil, i), As: store.Applied})
			}
			before := c.n.Load()
			b, verdicts, err := s.Begin(t.Context(), store.TxOptions{}, marks)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range verdicts[:len(verdicts)-len(batch.ending.Trim)] {
				if v.Kind != store.Fresh {
					continue
				}
				if _, err := b.Tx(i).Exec("insert into effects values (?)", i); err != nil {
					t.Fatal(err)
				}
			}
			if r := b.Commit(t.Context(), batch.ending); r.Outcome != store.Committed {
				t.Fatal(r)
			}
			if got := c.n.Load() - before; got != batch.want {
				t.Errorf("%d statements, want %d", got, batch.want)
			}
		})
	}
	// Statements that write and check markers exist in five lengths. The only connection prepares each statement once.
	if got, opened := c.prepared.Load(), c.opened.Load(); got != 10*opened {
		t.Errorf("%d statements were prepared on %d connections, want 10 on each", got, opened)
	}
}

func TestAConnectionIsThrownAwayAfterAnUncleanEnd(t *testing.T) {
	c := &counter{path: newFile(t)}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	s := storeOn(t, db)
	i := instanceOn(t, s, db)
	all := makeMarks(t, s, "a")
	for _, end := range []struct {
		name  string
		do    func(b store.Batch[*sql.Tx])
		fresh int64
	}{
		{"a rollback is clean", func(b store.Batch[*sql.Tx]) { b.Rollback(t.Context()) }, 0},
		{"a handler's own commit is not", func(b store.Batch[*sql.Tx]) {
			_ = b.Tx(0).Commit()
			b.Commit(t.Context(), store.Ending{})
		}, 1},
		{"a kill is not", func(b store.Batch[*sql.Tx]) { b.Kill(); b.Rollback(t.Context()) }, 1},
		{"a commit is clean", func(b store.Batch[*sql.Tx]) { b.Commit(t.Context(), store.Ending{}) }, 0},
	} {
		t.Run(end.name, func(t *testing.T) {
			before := c.opened.Load()
			b, _, err := s.Begin(t.Context(), store.TxOptions{}, all)
			if err != nil {
				t.Fatal(err)
			}
			end.do(b)
			if _, err := s.Acts(t.Context(), 0, 1); err != nil {
				t.Error(err)
			}
			if got := c.opened.Load() - before; got != end.fresh {
				t.Errorf("%d connections were opened, want %d", got, end.fresh)
			}
		})
	}
	sqlsuite.Works(t, i, makeMarks(t, s, "b"))
}

func TestAnActWritesBeforeItReads(t *testing.T) {
	t.Run("trap_117_a_writer_between_reading_and_writing_does_no_harm", func(t *testing.T) {
		c := &counter{path: newFile(t)}
		db := sql.OpenDB(c)
		t.Cleanup(func() { _ = db.Close() })
		s := storeOn(t, db)
		exec(t, db, "create table elsewhere (n)")
		other := openFile(t, c.path, impatient)
		c.queried = func(text string) {
			_, err := other.Exec("insert into elsewhere values (1)")
			t.Logf("a writer beside %.30q: %v", text, err)
		}
		if _, err := s.Setup(t.Context(), "x", "create table mine (n)"); err != nil {
			t.Error(err)
		}
		if _, err := s.Scope(t.Context(), "c", "s", 0); err != nil {
			t.Error(err)
		}
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: 1, ID: []byte("a"), As: store.Parked}})
		if err != nil {
			t.Fatal(err)
		}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked}}}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		if err := errors.Join(s.Discard(t.Context(), store.Act{Verb: "discard", Who: "ana"}, store.RowRevision{Number: 1, Revision: 1})...); err != nil {
			t.Error(err)
		}
	})
}

func TestTablesThatAreAlteredBetweenBatches(t *testing.T) {
	c := &counter{path: newFile(t)}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	s := storeOn(t, db)
	i := instanceOn(t, s, db)
	other := openFile(t, c.path, pragmas+foreignKeys)
	sqlsuite.Works(t, i, makeMarks(t, s, "a", "b", "c", "d"))
	before := c.prepared.Load()
	for n, change := range []string{"alter table semel_markers add column note text", "create index more on semel_markers (at)", "vacuum", "drop index more"} {
		exec(t, other, change)
		sqlsuite.Works(t, i, makeMarks(t, s, fmt.Sprint(n, "a"), fmt.Sprint(n, "b"), fmt.Sprint(n, "c"), fmt.Sprint(n, "d"), fmt.Sprint(n, "e")))
	}
	if got := c.prepared.Load(); got != before {
		t.Errorf("%d statements were prepared again, which the database does by itself", got-before)
	}
}

func TestAPoolThatKeepsNoConnectionPreparesNothing(t *testing.T) {
	t.Run("trap_T111_a_file_that_goes_meanwhile_is_not_made_anew", func(t *testing.T) {
		c := &counter{path: newFile(t)}
		db := sql.OpenDB(c)
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxIdleConns(-1)
		s := storeOn(t, db)
		all := makeMarks(t, s, "a")
		next := c.opened.Load() + 1
		c.connected = func(n int64) {
			if n == next {
				deleteFile(t, c.path)
			}
		}
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, all)
		if err == nil { // the connection still uses the deleted file, so its commits must fail
			if r := b.Commit(t.Context(), store.Ending{}); r.Outcome == store.Committed {
				t.Error("it is committed to a file that is gone")
			}
		}
		if got := c.opened.Load() - next + 1; got != 1 {
			t.Errorf("%d connections were opened for a batch", got)
		}
		if _, err := os.Stat(c.path); err == nil {
			t.Error("a file was made in its place")
		}
	})
}
