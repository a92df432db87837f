package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/worlds/children"
	"github.com/semel-go/semel/sqlstore"
)

// order tells the child process which file to use, and after how many sealed lines it waits to be killed.
type order struct {
	Path  string
	Lines int
}

func TestMain(m *testing.M) { children.Main(m, child) }

// reportReady reports that the child is at its point, and waits there until the child is killed.
func reportReady() {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// extendSeals extends the audit chain, and waits to be killed after the number of lines that the parameter lines
// says, or at the end.
func extendSeals(s *sqlstore.Store, lines int) error {
	_, err := s.Seal(context.Background(), admin.Sealing{At: func(n int) {
		if n == lines {
			reportReady()
		}
	}})
	reportReady()
	return err
}

// child seals the log of changes of a file.
func child(o order) error {
	db, err := sql.Open("sqlite", "file:"+o.Path+pragmas+foreignKeys)
	if err != nil {
		return err
	}
	s, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	return extendSeals(s, o.Lines)
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
