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

// Store is the database that the releases share. The methods of Store give the test access to the database.
type Store interface {
	// Readers returns the number of processes that run at the same time, each with a file of its own.
	Readers() int
	// Policy returns the store's line in the policy. Env returns the environment variables of the process with the
	// given name.
	Policy(prefix string) string
	Env(name string) []string
	// Effects returns the number of rows in the effect log. Reader returns a connection for queries of the
	// ledger.
	Effects(ctx context.Context) (int, error)
	Reader() ledger.Reader
	Exec(ctx context.Context, statement string) error
	// Catch freezes a process, in an open transaction if possible.
	Catch(ctx context.Context, p *processes.Process, name string, random *rand.Rand, blind bool) (open bool, err error)
	Close() error
}

// file is a SQLite database. The processes that use it run one after the other, because a file of messages can have
// only one reader.
type file struct{ *processes.SQLite }

const database = "counts.db"

// SQLite returns a store in a new database in the folder.
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

// server is a PostgreSQL database that two processes use at the same time.
type server struct {
	*processes.Activity
	dsn string
}

// Postgres returns a store in the database at dsn. The database must be empty.
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

// The time for which Catch waits until a process begins a transaction. A process without remaining work begins no
// transaction.
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
