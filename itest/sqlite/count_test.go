package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"modernc.org/sqlite"
)

// counter opens connections that count their statements, BEGIN, COMMIT and
// ROLLBACK among them. In SQLite each is a call and none is a round trip.
type counter struct {
	path string
	n    atomic.Int64
}

func (c *counter) Driver() driver.Driver { return &sqlite.Driver{} }

func (c *counter) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open("file:" + c.path + pragmas + foreignKeys)
	if err != nil {
		return nil, err
	}
	return countedConn{conn.(fullConn), &c.n}, nil
}

type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.Validator
	driver.SessionResetter
}

type countedConn struct {
	fullConn
	n *atomic.Int64
}

func (c countedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.n.Add(1)
	tx, err := c.fullConn.BeginTx(ctx, o)
	return countedTx{tx, c.n}, err
}

func (c countedConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	c.n.Add(1)
	return c.fullConn.ExecContext(ctx, q, args)
}

func (c countedConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.Add(1)
	return c.fullConn.QueryContext(ctx, q, args)
}

type countedTx struct {
	driver.Tx
	n *atomic.Int64
}

func (t countedTx) Commit() error   { t.n.Add(1); return t.Tx.Commit() }
func (t countedTx) Rollback() error { t.n.Add(1); return t.Tx.Rollback() }

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
	row := semel.Row{State: semel.StateParked, Message: &semel.Message{}}
	for _, batch := range []struct {
		name        string
		first, last int // ids; those below the highest so far are duplicates
		ending      semel.Ending
		want        int64
	}{
		{"100 fresh messages: the effects and 5", 0, 100, semel.Ending{}, 100 + 5},
		{"50 duplicates and 50 fresh: one more", 50, 150, semel.Ending{}, 50 + 6},
		{"only duplicates", 0, 100, semel.Ending{}, 6},
		{"500 fresh: the marks are one statement", 150, 650, semel.Ending{}, 500 + 5},
		{"501 fresh: they are two", 650, 1151, semel.Ending{}, 501 + 6},
		{"any number of trims is one more", 1151, 1251, semel.Ending{Trim: []int{90, 91, 92}}, 97 + 6},
		{"a row is one, and one for the marker if its outcome differs", 1251, 1252, semel.Ending{Rows: []semel.Row{row}}, 1 + 7},
		{"one message", 1252, 1253, semel.Ending{}, 1 + 5},
	} {
		t.Run(batch.name, func(t *testing.T) {
			var marks []semel.Mark
			for i := batch.first; i < batch.last; i++ {
				marks = append(marks, semel.Mark{Scope: scope, ID: fmt.Append(nil, i), As: semel.Applied})
			}
			before := c.n.Load()
			b, verdicts, err := s.Begin(t.Context(), semel.TxOptions{}, marks)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range verdicts[:len(verdicts)-len(batch.ending.Trim)] {
				if v.Kind != semel.Fresh {
					continue
				}
				if _, err := b.Tx(i).Exec("insert into effects values (?)", i); err != nil {
					t.Fatal(err)
				}
			}
			if r := b.Commit(t.Context(), batch.ending); r.Outcome != semel.Committed {
				t.Fatal(r)
			}
			if got := c.n.Load() - before; got != batch.want {
				t.Errorf("%d statements, want %d", got, batch.want)
			}
		})
	}
}
