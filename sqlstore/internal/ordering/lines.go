// Package ordering keeps the order of messages, in lanes and in streams. In a lane, a message waits for the earlier
// messages; the table `lines` has one row for each lane. In a stream, versions are applied one after the other.
package ordering

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements admin.Lines and admin.Streams, except the operators' changes of rows.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// Busy returns the indexes of messages whose lane has waiting rows. Busy checks only the messages whose indexes are in
// the parameter chosen.
func Busy(ctx context.Context, db *database.DB, tx *sql.Tx, marks []store.Mark, chosen []int) (busy []int, err error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	if db.Postgres != nil {
		names := make([]any, 0, len(chosen))
		for _, i := range chosen {
			names = append(names, marks[i].Line)
		}
		places, err := database.Indexes(ctx, tx, db.Postgres.BusyLines, database.Arrays(1, names)...)
		for _, k := range places {
			busy = append(busy, chosen[k-1])
		}
		return busy, err
	}
	for _, i := range chosen {
		var one int
		switch err := tx.QueryRowContext(ctx, db.SQLite.BusyLine, marks[i].Line).Scan(&one); {
		case err == nil:
			busy = append(busy, i)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return busy, nil
}

// EnterLines adds a batch's rows to their lanes. The result is true if a row was written as blocked, but is the first
// row of its lane.
func EnterLines(ctx context.Context, db *database.DB, tx *sql.Tx, marks []sqlform.Mark, all []lines.Entry) (came bool, err error) {
	if len(all) == 0 {
		return false, nil
	}
	if db.Postgres != nil {
		return postgresEnter(ctx, db, tx, marks, all)
	}
	for _, n := range all {
		if _, err := tx.ExecContext(ctx, db.SQLite.KnowLine, []byte(n.Line)); err != nil {
			return false, err
		}
		var state store.RowState
		if err := tx.QueryRowContext(ctx, db.SQLite.EnterLine, marks[n.Mark].Scope, []byte(n.Line), marks[n.Mark].Key).Scan(&state); err != nil {
			return false, err
		}
		came = came || state == store.StateReceived
	}
	return came, nil
}

func postgresEnter(ctx context.Context, db *database.DB, tx *sql.Tx, marks []sqlform.Mark, all []lines.Entry) (came bool, err error) {
	var places, entries []any
	for _, n := range lines.Counted(all) {
		places = append(places, []byte(n.Line), n.Rows)
	}
	for _, n := range all {
		entries = append(entries, marks[n.Mark].Scope, marks[n.Mark].Key, []byte(n.Line), n.Behind)
	}
	if _, err := tx.ExecContext(ctx, db.Postgres.KnowLines, database.Arrays(2, places)...); err != nil {
		return false, err
	}
	n := 0
	err = tx.QueryRowContext(ctx, db.Postgres.EnterLines, database.Arrays(4, entries)...).Scan(&n)
	return n > 0, err
}

// ChangeLines adds rows to lanes, and unblocks the next rows of lanes from which other rows were removed. The result
// freed is true if a row was unblocked, or if a row was written as blocked, but is the first row of its lane.
func ChangeLines(ctx context.Context, db *database.DB, tx *sql.Tx, marks []sqlform.Mark, entering []lines.Entry, left []int64) (freed bool, err error) {
	if len(left) > 0 && db.Postgres != nil {
		var names []any
		for _, n := range lines.Counted(entering) {
			names = append(names, []byte(n.Line))
		}
		if _, err := tx.ExecContext(ctx, db.Postgres.LeaveLines, database.Arrays(1, database.Anys(left))[0], database.Arrays(1, names)[0]); err != nil {
			return false, err
		}
	}
	came, err := EnterLines(ctx, db, tx, marks, entering)
	if err != nil {
		return false, err
	}
	next, err := advanceLines(ctx, db, tx, left)
	return came || next, err
}

// LeaveLines unblocks the next rows of the lanes from which the given rows were removed.
func LeaveLines(ctx context.Context, db *database.DB, tx *sql.Tx, left []int64) error {
	_, err := ChangeLines(ctx, db, tx, nil, nil, left)
	return err
}

// advanceLines unblocks the first rows of the lanes from which the given rows were removed.
func advanceLines(ctx context.Context, db *database.DB, tx *sql.Tx, left []int64) (freed bool, err error) {
	if len(left) == 0 {
		return false, nil
	}
	if db.Postgres != nil {
		n := 0
		err := tx.QueryRowContext(ctx, db.Postgres.AdvanceLines, database.Arrays(1, database.Anys(left))...).Scan(&n)
		return n > 0, err
	}
	numbers := sqlform.JSON(left)
	n, err := database.Affected(tx.ExecContext(ctx, db.SQLite.AdvanceLines, numbers))
	if err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, db.SQLite.ForgetLines, numbers)
	return n > 0, err
}

// First implements admin.Lines.
func (s *Store) First(ctx context.Context, number int64) (first int64, err error) {
	err = s.db.Pool.QueryRowContext(ctx, s.db.SQL.FirstInLine, number).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return first, s.db.Answer("first in line", err)
}

// Sweep implements admin.Lines.
func (s *Store) Sweep(ctx context.Context) (freed int64, err error) {
	err = s.db.Write(ctx, func(tx *sql.Tx) (err error) {
		if s.db.Postgres != nil {
			return tx.QueryRowContext(ctx, s.db.SQL.SweepLines).Scan(&freed)
		}
		freed, err = database.Affected(tx.ExecContext(ctx, s.db.SQL.SweepLines))
		return err
	})
	return freed, s.db.Answer("sweep", err)
}

// The number of rows that one transaction removes from their lanes.
const dissolvedAtOnce = 1000

// Dissolve implements admin.Lines.
func (s *Store) Dissolve(ctx context.Context, consumer string) (rows int64, err error) {
	first, end := append([]byte(consumer), 0), append([]byte(consumer), 1)
	for more := true; more && err == nil; {
		err = s.db.Write(ctx, func(tx *sql.Tx) error {
			n, err := database.Affected(tx.ExecContext(ctx, s.db.SQL.DissolveRows, first, end, dissolvedAtOnce))
			rows, more = rows+n, n == dissolvedAtOnce
			return err
		})
	}
	if err == nil && rows > 0 {
		err = s.db.Write(ctx, func(tx *sql.Tx) error { return dropLines(ctx, s.db, tx, first, end) })
	}
	return rows, s.db.Answer("dissolve", err)
}

// dropLines removes the empty lanes whose names are between the parameters first and end.
func dropLines(ctx context.Context, db *database.DB, tx *sql.Tx, first, end []byte) error {
	if db.Postgres != nil {
		if _, err := tx.ExecContext(ctx, db.Postgres.LockLines, first, end); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, db.SQL.DropLines, first, end)
	return err
}
