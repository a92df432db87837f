//go:build unix

package processes

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite watches a SQLite file for a fault test, from another process than semel.
type SQLite struct{ Conn *sql.Conn }

// OpenSQLite opens the file, or creates it if it does not exist.
func OpenSQLite(ctx context.Context, path string) (*SQLite, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(0)")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	return &SQLite{conn}, err
}

// Close closes the file.
func (d *SQLite) Close() error { return d.Conn.Close() }

// Effects returns the number of effects in the log. The result is 0 if the log does not exist yet, and while another
// connection has locked the file exclusively.
func (d *SQLite) Effects(ctx context.Context) (int, error) {
	var tables, n int
	err := d.Conn.QueryRowContext(ctx, `select count(*) from sqlite_master where name = 'effects'`).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, unlessBusy(err)
	}
	err = d.Conn.QueryRowContext(ctx, `select coalesce(max(rowid), 0) from effects`).Scan(&n)
	return n, unlessBusy(err)
}

// Writing reports whether another connection has an open write transaction. Writing tries to begin a write transaction
// itself, which SQLite rejects at once if another one is open. Call Writing while semel is frozen and no other process
// writes. If the process was frozen while it opened the write-ahead log, SQLite locks out all other connections, and
// Writing returns an error after some seconds.
func (d *SQLite) Writing(ctx context.Context) (bool, error) {
	_, err := d.Conn.ExecContext(ctx, `begin immediate`)
	switch {
	case hasCode(err, sqlite3.SQLITE_BUSY):
		return true, nil
	case hasCode(err, sqlite3.SQLITE_PROTOCOL):
		return false, nil
	case err != nil:
		return false, err
	}
	_, err = d.Conn.ExecContext(ctx, `rollback`)
	return false, err
}

// The maximum number of times that Catch freezes a process until the process has an open transaction.
const fileTries = 500

// Catch freezes the only process that writes the file, repeatedly, until the process has an open write transaction. If
// blind is true, Catch freezes the process only once. When Catch returns, the process is frozen.
func (d *SQLite) Catch(ctx context.Context, p *Process, _ string, random *rand.Rand, blind bool) (open bool, err error) {
	return catch(ctx, p, random, fileTries, blind, func() (bool, error) { return d.Writing(ctx) })
}

func hasCode(err error, code int) bool {
	var coded *sqlite.Error
	return errors.As(err, &coded) && coded.Code()&0xff == code
}

func unlessBusy(err error) error {
	if hasCode(err, sqlite3.SQLITE_BUSY) {
		return nil
	}
	return err
}
