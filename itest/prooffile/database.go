//go:build unix

package prooffile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
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

// log is what the effect log and the counters say.
type log struct {
	rows, distinct int
	deliveries     map[string]bool
	// astray are groups whose counter is not their number of log rows.
	astray int
}

// reader is a database of either kind.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readLog(ctx context.Context, from reader) (log, error) {
	l := log{deliveries: map[string]bool{}}
	rows, err := from.QueryContext(ctx, `select delivery from effects`)
	if err != nil {
		return l, fmt.Errorf("read the effect log: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return l, err
		}
		l.rows++
		l.deliveries[id] = true
	}
	if err := rows.Err(); err != nil {
		return l, err
	}
	l.distinct = len(l.deliveries)
	const groups = `
		select count(*) from (
		    select type, repository, sum(n) as n from (
		        select type, repository, n from counters
		        union all
		        select type, repository, -count(*) from effects group by type, repository) as both_sides
		    group by type, repository) as unlike where n <> 0`
	return l, from.QueryRowContext(ctx, groups).Scan(&l.astray)
}

// missing are how many ids have no effect.
func (l log) missing(ids int) int {
	missing := 0
	for i := range ids {
		if !l.deliveries[DeliveryID(i)] {
			missing++
		}
	}
	return missing
}
