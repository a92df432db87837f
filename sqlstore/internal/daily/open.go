// Package daily stores the markers of a consumer in a table with daily partitions, and moves existing markers into this
// table.
package daily

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// OpenDays returns the store of a consumer whose markers are in a table with daily partitions.
func OpenDays(ctx context.Context, db *database.DB, o database.Dated) (*database.DB, error) {
	if err := keepsDays(db, &o); err != nil {
		return nil, err
	}
	d := &database.Days{DB: db, Dated: o}
	err := register(ctx, d)
	if err == nil {
		err = d.Load()
	}
	if err != nil {
		return nil, db.Answer("markers by day", err)
	}
	own, err := d.View()
	if err != nil {
		return nil, err
	}
	if err := MakeDays(ctx, own); err != nil {
		return nil, db.Answer("markers by day", err)
	}
	return own, nil
}

// keepsDays returns an error if the store cannot have a table with daily partitions.
func keepsDays(db *database.DB, o *database.Dated) error {
	switch {
	case db.Postgres == nil || !db.MarksAlone() || db.Days != nil:
		return fmt.Errorf("sqlstore: only a store in PostgreSQL that marks in no other table keeps markers by day: %w", semel.ErrUnsupported)
	case database.Ceilings[o.IDTime] == "":
		return fmt.Errorf("sqlstore: markers are kept by day for ids that carry a time, not %v: %w", o.IDTime, semel.ErrUnsupported)
	case o.Consumer == "" || o.Back < 0 || o.Back > database.MostBack:
		return fmt.Errorf("sqlstore: markers by day need the name of a consumer, and 0 to %d days back", database.MostBack)
	}
	return nil
}

// register finds the number of the consumer's table, or creates the table.
func register(ctx context.Context, d *database.Days) error {
	found, err := find(ctx, d, d.DB.Pool)
	if err != nil || found {
		return err
	}
	return d.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, d.DB.Postgres.LockDated); err != nil {
			return err
		}
		if found, err := find(ctx, d, tx); err != nil || found {
			return err
		}
		return create(ctx, d, tx)
	})
}

func find(ctx context.Context, d *database.Days, db database.Queryer) (bool, error) {
	number, kind, err := Dated(ctx, d.DB, db, d.Consumer)
	if errors.Is(err, sql.ErrNoRows) {
		number, kind, err = movingTo(ctx, d.DB, db, d.Consumer)
		d.Moving = err == nil
	}
	d.Number = number
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err == nil && kind != d.IDTime.String():
		err = fmt.Errorf("the markers of consumer %q are kept by day for ids of the kind %s, not %v; use that kind, or another consumer's name: %w", d.Consumer, kind, d.IDTime, semel.ErrState)
	}
	return err == nil, err
}

func create(ctx context.Context, d *database.Days, tx *sql.Tx) error {
	// If the row about a consumer's table is missing in the table dated, an existing table with daily
	// partitions may belong to this consumer. With a new table, every message would take effect again.
	if err := d.DB.Faults(ctx, d.DB.SQL.LintRows); err != nil {
		return err
	}
	var elsewhere bool
	if err := tx.QueryRowContext(ctx, d.DB.Postgres.UndatedMarkers, []byte(d.Consumer)).Scan(&elsewhere); err != nil {
		return err
	}
	if elsewhere && !d.Move {
		return fmt.Errorf("consumer %q has markers in %smarkers, which a store with a table of days does not read; move them, as docs/operate/daily-partitions.md shows: %w", d.Consumer, d.DB.Prefix, semel.ErrState)
	}
	if err := tx.QueryRowContext(ctx, d.DB.Postgres.NewDated, []byte(d.Consumer), d.IDTime.String(), d.Back).Scan(&d.Number); err != nil {
		return err
	}
	if err := d.Load(); err != nil {
		return err
	}
	if err := execAll(ctx, tx, d.SQL.Create, d.SQL.CreateAside, d.SQL.CreateReadable); err != nil {
		return err
	}
	if !elsewhere {
		return nil
	}
	return moveNow(ctx, d, tx)
}

// execAll executes statements one after the other. A text may contain several statements.
func execAll(ctx context.Context, tx *sql.Tx, texts ...string) error {
	for _, text := range texts {
		for statement := range strings.SplitSeq(text, ";\n\n") {
			if strings.HasPrefix(statement, "--") {
				continue // the text is only a comment
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveNow moves the consumer's markers into its new table. No other transaction can see that table yet.
func moveNow(ctx context.Context, d *database.Days, tx *sql.Tx) error {
	var odd int64
	if err := tx.QueryRowContext(ctx, d.SQL.OddlySpelled, []byte(d.Consumer)).Scan(&odd); err != nil {
		return err
	}
	if odd > 0 {
		return fmt.Errorf("consumer %q has %d markers whose ids differ in case from the spelling in a table of days, so that their duplicates would count as fresh; do not move them: %w", d.Consumer, odd, semel.ErrState)
	}
	for {
		w, err := firstMissing(ctx, d, tx)
		if err != nil {
			return err
		}
		if w == nil {
			break
		}
		if err := createDay(ctx, d, tx, w); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, d.SQL.RaiseHigh, w.next, w.to); err != nil {
			return err
		}
	}
	for _, statement := range []string{d.SQL.Move, d.SQL.MoveRows} {
		if _, err := tx.ExecContext(ctx, statement, []byte(d.Consumer)); err != nil {
			return err
		}
	}
	return nil
}

// Dated returns the number of the consumer's table with daily partitions and the kind of its ids. The error is
// sql.ErrNoRows if the consumer has no table with daily partitions.
func Dated(ctx context.Context, s *database.DB, db database.Queryer, consumer string) (number int64, kind string, err error) {
	err = db.QueryRowContext(ctx, s.Postgres.Dated, []byte(consumer)).Scan(&number, &kind)
	return number, kind, err
}

// movingTo returns the same as Dated, for a consumer whose move has begun and not ended.
func movingTo(ctx context.Context, s *database.DB, db database.Queryer, consumer string) (number int64, kind string, err error) {
	err = db.QueryRowContext(ctx, s.Postgres.Moving, []byte(consumer)).Scan(&number, &kind)
	return number, kind, err
}

// OfActs returns the same as OfConsumer, for callers that write. If a move has begun, OfActs returns the database with
// the new table, because a move waits only for transactions that use the new table's name.
func OfActs(ctx context.Context, db *database.DB, consumer string) (*database.DB, error) {
	if db.Postgres == nil || db.Days != nil {
		return db, nil
	}
	number, kind, err := movingTo(ctx, db, db.Pool, consumer)
	if errors.Is(err, sql.ErrNoRows) {
		return OfConsumer(ctx, db, consumer)
	}
	return OfDays(db, consumer, kind, number, err)
}

// OfConsumer returns the database with the consumer's markers: db, or a database for the consumer's table with
// daily partitions.
func OfConsumer(ctx context.Context, db *database.DB, consumer string) (*database.DB, error) {
	if db.Postgres == nil || db.Days != nil {
		return db, nil
	}
	number, kind, err := Dated(ctx, db, db.Pool, consumer)
	return OfDays(db, consumer, kind, number, err)
}

// OfRow returns the database with the marker of an inbox row, for changes by operators.
func OfRow(ctx context.Context, db *database.DB, number int64) (*database.DB, error) {
	stores, err := OfRows(ctx, db, []store.RowRevision{{Number: number}})
	for own := range stores {
		return own, nil
	}
	return nil, err
}

// OfRows is like OfRow, for several rows: for each database, OfRows returns the indexes of the rows whose markers are
// in this database.
func OfRows(ctx context.Context, db *database.DB, rows []store.RowRevision) (map[*database.DB][]int, error) {
	stores, byTable, byRow := map[*database.DB][]int{}, map[int64]*database.DB{}, map[int64]*database.DB{}
	if db.Postgres != nil && db.Days == nil {
		err := database.EachRow(ctx, db.Pool, db.Postgres.DatedRows, func(found *sql.Rows) error {
			var number, table int64
			var consumer []byte
			var kind string
			err := found.Scan(&number, &consumer, &kind, &table)
			if err == nil && byTable[table] == nil {
				byTable[table], err = OfDays(db, string(consumer), kind, table, nil)
			}
			byRow[number] = byTable[table]
			return err
		}, database.ActedNumbers(database.NumbersSeen(rows)...))
		if err != nil {
			return nil, db.Answer("markers by day", err)
		}
	}
	for i, r := range rows {
		own := byRow[r.Number]
		if own == nil {
			own = db
		}
		stores[own] = append(stores[own], i)
	}
	return stores, nil
}

// OfDays returns the database for the consumer's table with daily partitions that has the given number. If err is
// sql.ErrNoRows, OfDays returns db.
func OfDays(db *database.DB, consumer, kind string, number int64, err error) (*database.DB, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return db, nil
	}
	if err != nil {
		return nil, db.Blameless("markers by day", err)
	}
	idTime, err := kindOf(consumer, kind)
	if err != nil {
		return nil, err
	}
	d := &database.Days{DB: db, Number: number, Dated: database.Dated{Consumer: consumer, IDTime: idTime}}
	if err := d.Load(); err != nil {
		return nil, err
	}
	return d.View()
}

// kindOf finds the kind of a consumer's ids by the name of the kind.
func kindOf(consumer, kind string) (identity.IDTime, error) {
	for k := range database.Ceilings {
		if k.String() == kind {
			return k, nil
		}
	}
	return identity.NoIDTime, fmt.Errorf("sqlstore: the markers of consumer %q are kept by day for ids of the kind %q, which this release does not know: %w", consumer, kind, semel.ErrState)
}

// NotDated returns an error if the consumer's markers are in a table with daily partitions, because the present store
// does not read the table with daily partitions.
func NotDated(ctx context.Context, s *database.DB, db database.Queryer, consumer string) error {
	if s.Postgres == nil || s.Days != nil {
		return nil
	}
	_, kind, err := Dated(ctx, s, db, consumer)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("the markers of consumer %q are kept by day, for ids of the kind %s, and this store does not read them; configure that in the consumer's policy, or use Store.Dated: %w", consumer, kind, semel.ErrState)
	}
	return err
}
