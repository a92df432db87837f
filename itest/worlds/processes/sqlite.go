//go:build unix

package processes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite watches a SQLite file for a proof, from another process than semel.
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

// Effects returns the number of effects in the log. It returns 0 if the log does not exist yet, and while
// another connection has locked the file exclusively.
func (d *SQLite) Effects(ctx context.Context) (int, error) {
	var tables, n int
	err := d.Conn.QueryRowContext(ctx, `select count(*) from sqlite_master where name = 'effects'`).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, unlessBusy(err)
	}
	err = d.Conn.QueryRowContext(ctx, `select coalesce(max(rowid), 0) from effects`).Scan(&n)
	return n, unlessBusy(err)
}

// Writing reports whether another connection has an open write transaction. It tries to begin one itself,
// which SQLite then rejects at once. Call Writing while semel is frozen and no other process writes. If the
// process was frozen while it opened the write-ahead log, SQLite locks out all other connections, and Writing
// returns an error after some seconds.
func (d *SQLite) Writing(ctx context.Context) (bool, error) {
	_, err := d.Conn.ExecContext(ctx, `begin immediate`)
	switch {
	case has(err, sqlite3.SQLITE_BUSY):
		return true, nil
	case has(err, sqlite3.SQLITE_PROTOCOL):
		return false, nil
	case err != nil:
		return false, err
	}
	_, err = d.Conn.ExecContext(ctx, `rollback`)
	return false, err
}

// fileTries is how often Catch freezes a process until it has an open transaction.
const fileTries = 500

// Catch freezes the only process that writes the file, repeatedly, until the process has an open write
// transaction. With blind it freezes the process only once. When Catch returns, the process is frozen.
func (d *SQLite) Catch(ctx context.Context, p *Process, _ string, random *rand.Rand, blind bool) (open bool, err error) {
	for try := 1; ; try++ {
		Pause(ctx, time.Duration(random.Int64N(int64(5*time.Millisecond))))
		if err := p.Freeze(); err != nil {
			return false, fmt.Errorf("freeze semel: %w", err)
		}
		open, err := d.Writing(ctx)
		if err != nil || open || blind || try == fileTries {
			return open, err
		}
		if err := p.Thaw(); err != nil {
			return false, err
		}
	}
}

func has(err error, code int) bool {
	var coded *sqlite.Error
	return errors.As(err, &coded) && coded.Code()&0xff == code
}

func unlessBusy(err error) error {
	if has(err, sqlite3.SQLITE_BUSY) {
		return nil
	}
	return err
}
