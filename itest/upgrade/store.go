//go:build unix

package upgrade

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// Store is the database over which the releases run, and the suite's own view
// of it.
type Store interface {
	// Readers are how many processes run at once, each with a file of its own.
	Readers() int
	// Policy is the store's line in the policy, Env what it takes from the
	// environment of the process with this name.
	Policy(prefix string) string
	Env(name string) []string
	// Effects counts the effect log; Reader reads all that the ledger adds up.
	Effects(ctx context.Context) (int, error)
	Reader() ledger.Reader
	Exec(ctx context.Context, statement string) error
	// Catch freezes a process, if it can with a transaction open.
	Catch(ctx context.Context, p *processes.Process, name string, random *rand.Rand, blind bool) (open bool, err error)
	Close() error
}

// file is a database of SQLite. Its processes run in turn, as one file of
// messages has one reader.
type file struct{ *processes.SQLite }

const database = "counts.db"

// SQLite is a new database in the folder.
func SQLite(ctx context.Context, folder string) (Store, error) {
	db, err := processes.OpenSQLite(ctx, filepath.Join(folder, database))
	return file{db}, err
}

func (file) Readers() int { return 1 }
func (file) Policy(prefix string) string {
	return fmt.Sprintf("sqlite: {path: %s, prefix: %s}", database, prefix)
}
func (file) Env(string) []string     { return nil }
func (f file) Reader() ledger.Reader { return f.Conn }

func (f file) Exec(ctx context.Context, statement string) error {
	_, err := f.Conn.ExecContext(ctx, statement)
	return err
}

// server is a database of PostgreSQL, into which two processes work at once.
type server struct {
	*processes.Activity
	dsn string
}

// Postgres is the database at dsn, which is empty.
func Postgres(dsn string) (Store, error) {
	view, err := processes.OpenActivity(dsn)
	return server{view, dsn}, err
}

func (server) Readers() int { return 2 }

func (server) Policy(prefix string) string {
	return fmt.Sprintf(`postgres: {url: "${DATABASE}", prefix: %s}`, prefix)
}

func (s server) Env(name string) []string {
	return []string{"DATABASE=" + s.dsn + "&application_name=" + name}
}

func (s server) Reader() ledger.Reader { return s.DB }

func (s server) Exec(ctx context.Context, statement string) error {
	_, err := s.DB.ExecContext(ctx, statement)
	return err
}

// met is how long a process is waited for that is to begin a transaction. One
// that has nothing left to do begins none.
const met = 10 * time.Second

func (s server) Catch(ctx context.Context, p *processes.Process, name string, random *rand.Rand, blind bool) (bool, error) {
	most, cancel := context.WithTimeout(ctx, met)
	defer cancel()
	open, err := s.Activity.Catch(most, p, name, random, blind)
	if err != nil && most.Err() != nil && ctx.Err() == nil {
		return false, p.Freeze()
	}
	return open, err
}

func (s server) Close() error { return s.DB.Close() }
