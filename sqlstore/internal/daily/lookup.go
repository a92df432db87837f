package daily

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Dated is the number and the kind of the table of days where the markers of a consumer
// are; sql.ErrNoRows: they are in none.
func Dated(ctx context.Context, s *database.DB, db database.Queryer, consumer string) (number int64, kind string, err error) {
	err = db.QueryRowContext(ctx, s.Postgres.Dated, []byte(consumer)).Scan(&number, &kind)
	return number, kind, err
}

// movingTo is Dated for a consumer whose markers move to days.
func movingTo(ctx context.Context, s *database.DB, db database.Queryer, consumer string) (number int64, kind string, err error) {
	err = db.QueryRowContext(ctx, s.Postgres.Moving, []byte(consumer)).Scan(&number, &kind)
	return number, kind, err
}

// OfActs is OfConsumer for those who write: a move waits for whoever marks by the name of
// the table of days, and for nobody else.
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

// OfConsumer is the store where the markers of a consumer are: this one, or one of days.
func OfConsumer(ctx context.Context, db *database.DB, consumer string) (*database.DB, error) {
	if db.Postgres == nil || db.Days != nil {
		return db, nil
	}
	number, kind, err := Dated(ctx, db, db.Pool, consumer)
	return OfDays(db, consumer, kind, number, err)
}

// OfRow is the store where the marker of a row is, for acts of people.
func OfRow(ctx context.Context, db *database.DB, number int64) (*database.DB, error) {
	stores, err := OfRows(ctx, db, []store.RowRevision{{Number: number}})
	for own := range stores {
		return own, nil
	}
	return nil, err
}

// OfRows is OfRow for several rows: the places of the rows by the store where their markers are.
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

// OfDays returns the database of a consumer whose markers lie in the table of days with this number; with
// sql.ErrNoRows they do not, and it returns db.
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

// kindOf is the kind of a consumer's ids by its name.
func kindOf(consumer, kind string) (identity.IDTime, error) {
	for k := range database.Ceilings {
		if k.String() == kind {
			return k, nil
		}
	}
	return identity.NoIDTime, fmt.Errorf("sqlstore: the markers of consumer %q are kept by day for ids of the kind %q, which this release does not know: %w", consumer, kind, semel.ErrState)
}

// NotDated refuses a consumer whose markers lie in a table of days to a store that does not
// look there.
func NotDated(ctx context.Context, s *database.DB, db database.Queryer, consumer string) error {
	if s.Postgres == nil || s.Days != nil {
		return nil
	}
	_, kind, err := Dated(ctx, s, db, consumer)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("the markers of consumer %q are kept by day, for ids of the kind %s, and are not looked for here; say so in its policy, or use Store.Dated: %w", consumer, kind, semel.ErrState)
	}
	return err
}
