package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// order contains the file that a child process uses, and the point at which the child waits to be killed.
type order struct {
	Path  string
	Point faults.Point
	// With Seal, the child extends the audit chain instead of processing a batch. Lines is the number of lines of the
	// chain after which the child waits to be killed.
	Seal  bool
	Lines int
}

func TestMain(m *testing.M) { children.Main(m, child) }

// The function ready reports that the child is at its point, and waits there until the child is killed.
func ready() {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// The function seals extends the audit chain, and waits to be killed after the number of lines that the parameter lines
// says, or at the end.
func seals(s *sqlstore.Store, lines int) error {
	_, err := s.Seal(context.Background(), admin.Sealing{At: func(n int) {
		if n == lines {
			ready()
		}
	}})
	ready()
	return err
}

// The function child processes one batch. At the point of its order, the child reports that it is ready and waits to be
// killed.
func child(o order) error {
	at := func(p faults.Point) {
		if p == o.Point {
			ready()
		}
	}
	db, err := sql.Open("sqlite", "file:"+o.Path+pragmas+foreignKeys)
	if err != nil {
		return err
	}
	s, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	if o.Seal {
		return seals(s, o.Lines)
	}
	ctx := context.Background()
	scope, err := s.Scope(ctx, "billing", "", 0)
	if err != nil {
		return err
	}
	b, _, err := s.Begin(ctx, store.TxOptions{}, []store.Mark{
		{Scope: scope, ID: []byte("a"), As: store.Applied}, {Scope: scope, ID: []byte("b"), As: store.Applied},
	})
	if err != nil {
		return err
	}
	at(faults.AfterMark)
	for i, id := range []string{"a", "b"} {
		if _, err := b.Tx(i).Exec("insert into effects values (?)", []byte(id)); err != nil {
			return err
		}
	}
	at(faults.AfterEffect)
	if r := b.Commit(ctx, store.Ending{}); r.Outcome != store.Committed {
		return r.Err
	}
	at(faults.AfterCommit)
	return nil
}

func TestAProcessThatIsKilled(t *testing.T) {
	t.Run("trap_T14_killed_after_the_mark_the_message_runs_again", func(t *testing.T) {
		killed(t, faults.AfterMark, store.Verdict{Kind: store.Fresh})
	})
	t.Run("trap_3_killed_before_the_commit_the_message_runs_again", func(t *testing.T) {
		killed(t, faults.AfterEffect, store.Verdict{Kind: store.Fresh})
	})
	t.Run("trap_2_killed_after_the_commit_the_message_is_a_duplicate", func(t *testing.T) {
		killed(t, faults.AfterCommit, store.Verdict{Kind: store.Seen, Was: store.Applied})
	})
}

func killed(t *testing.T, point faults.Point, want store.Verdict) {
	path := newFile(t)
	db := openFile(t, path, pragmas+foreignKeys)
	s := storeOn(t, db)
	i := instanceOn(t, s, db)
	killWith(t, order{Path: path, Point: point})
	all := marks(t, s, "a", "b")
	if _, v, err := sqlsuite.Attempt(t, i, all); err != nil || v[0] != want || v[1] != want {
		t.Errorf("after the kill the verdicts are %v, %v, want %v", v, err, want)
	}
	sqlsuite.Works(t, i, all)
	sound(t, db)
}

// killWith runs a child to the point of its order, and kills the child at this point.
func killWith(t *testing.T, o order) {
	t.Helper()
	c := children.Command(t.Context(), t, o)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Errorf("the child says %q, %v", line, err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
}
