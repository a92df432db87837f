package daily

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// BeginMove begins a move to daily partitions unless the move has begun already.
func BeginMove(ctx context.Context, db *database.DB, o database.Dated) error {
	if err := keepsDays(db, &o); err != nil {
		return err
	}
	m := &move{Days: &database.Days{DB: db, Dated: o}}
	return db.Answer("move to days", db.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, db.Postgres.LockDated); err != nil {
			return err
		}
		if found, err := find(ctx, m.Days, tx); err != nil || found {
			if err == nil && !m.Moving {
				err = fmt.Errorf("the markers of consumer %q are in a table of days: %w", o.Consumer, semel.ErrState)
			}
			return err
		}
		return m.begin(ctx, tx)
	}))
}

// move fills a table with daily partitions while its consumer still writes markers to the table that all consumers
// share.
type move struct {
	*database.Days
	moves sqlform.Moving
	// The statements for the table under its final name.
	named sqlform.Dated
}

// The suffix of the table's name until the move ends.
const filling = "_days"

// load reads the statements for the table, under its temporary name and under its final name.
func (m *move) load() error {
	return errors.Join(m.Fill(&m.SQL, "dated.sql", filling), m.Fill(&m.named, "dated.sql", ""), m.Fill(&m.moves, "moving.sql", ""))
}

func (m *move) begin(ctx context.Context, tx *sql.Tx) error {
	// The statements are loaded without the number of the table: the statement below does not need the number, because
	// it assigns the number.
	if err := m.load(); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, m.moves.NewMoving, []byte(m.Consumer), m.IDTime.String()).Scan(&m.Number); err != nil {
		return err
	}
	if err := m.load(); err != nil {
		return err
	}
	if err := execAll(ctx, tx, m.SQL.Create, m.moves.StandIn); err != nil {
		return err
	}
	wanted, err := m.daysFrom(ctx, tx, "")
	if err != nil {
		return err
	}
	return m.makeAll(ctx, tx, wanted, nil)
}

// makeAll creates those wanted partitions that do not exist.
func (m *move) makeAll(ctx context.Context, tx *sql.Tx, wanted, existing []day) error {
	for i := range wanted {
		if isCovered(existing, &wanted[i]) {
			continue
		}
		if err := createDay(ctx, m.Days, tx, &wanted[i]); err != nil {
			return err
		}
	}
	return nil
}

// daysFrom returns the days from the given first day up to three days after today. If the first day is empty, the list
// begins m.Back days ago.
func (m *move) daysFrom(ctx context.Context, tx *sql.Tx, first string) ([]day, error) {
	return database.List(ctx, tx, m.moves.DaysFrom, func(rows *sql.Rows) (day, error) {
		var w day
		err := rows.Scan(&w.name, &w.from, &w.to, &w.next)
		return w, err
	}, first, m.Back)
}

// ensurePartitions returns the partitions from the first existing partition up to three days after today. Missing
// partitions are created.
func (m *move) ensurePartitions(ctx context.Context, tx *sql.Tx) ([]day, error) {
	if _, err := tx.ExecContext(ctx, m.SQL.Hexadecimal); err != nil {
		return nil, err
	}
	stand, err := listPartitions(ctx, m.Days, tx)
	if err != nil {
		return nil, err
	}
	if len(stand) == 0 {
		return nil, fmt.Errorf("the table of days of consumer %q has no days: %w", m.Consumer, semel.ErrSchema)
	}
	wanted, err := m.daysFrom(ctx, tx, dateOf(stand[0].name))
	if err != nil {
		return nil, err
	}
	return wanted, m.makeAll(ctx, tx, wanted, stand)
}

// dateOf returns the date at the end of a partition's name.
func dateOf(name string) string {
	return strings.Trim(name[strings.LastIndexByte(name, '_')+1:], `"`)
}

// scopesOf returns the numbers of the consumer's scopes (one for each source and generation).
func (m *move) scopesOf(ctx context.Context, db database.Queryer) (all []int64, err error) {
	return database.List(ctx, db, m.moves.ScopesOf, func(rows *sql.Rows) (int64, error) {
		var n int64
		err := rows.Scan(&n)
		return n, err
	}, []byte(m.Consumer))
}
