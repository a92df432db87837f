//go:build unix

package prooffile

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/webhooks"
)

// database is the proof's own view of the database, from another process than
// semel's and with the one question that only the database can answer.
type database struct{ conn *sql.Conn }

func openDatabase(ctx context.Context, folder string) (*database, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, databaseFile)+"?_pragma=busy_timeout(0)")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	return &database{conn}, err
}

func (d *database) close() error { return d.conn.Close() }

// effects is how many effects are in the log; 0 before there is one.
func (d *database) effects(ctx context.Context) (int, error) {
	var tables, n int
	err := d.conn.QueryRowContext(ctx, `select count(*) from sqlite_master where name = 'effects'`).Scan(&tables)
	if err != nil || tables == 0 {
		return 0, unlessBusy(err)
	}
	err = d.conn.QueryRowContext(ctx, `select coalesce(max(rowid), 0) from effects`).Scan(&n)
	return n, unlessBusy(err)
}

// writing reports whether another connection has a write transaction open: the
// database refuses a second one at once. It is asked while semel is frozen, and
// nobody else writes.
func (d *database) writing(ctx context.Context) (bool, error) {
	_, err := d.conn.ExecContext(ctx, `begin immediate`)
	if isBusy(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	_, err = d.conn.ExecContext(ctx, `rollback`)
	return false, err
}

func isBusy(err error) bool {
	var coded *sqlite.Error
	return errors.As(err, &coded) && coded.Code()&0xff == sqlite3.SQLITE_BUSY
}

func unlessBusy(err error) error {
	if isBusy(err) {
		return nil
	}
	return err
}

// missing are how many ids have no effect.
func missing(e ledger.Effects, ids int) int {
	missing := 0
	for i := range ids {
		if !e.IDs[webhooks.ID(i)] {
			missing++
		}
	}
	return missing
}
