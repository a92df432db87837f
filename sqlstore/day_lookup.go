package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/store"
)

// dated is the number and the kind of the table of days where the markers of a consumer
// are; sql.ErrNoRows: they are in none.
func (s *Store) dated(ctx context.Context, db queries, consumer string) (number int64, kind string, err error) {
	err = db.QueryRowContext(ctx, s.postgres.Dated, []byte(consumer)).Scan(&number, &kind)
	return number, kind, err
}

// movingTo is Store.dated for a consumer whose markers move to days.
func (s *Store) movingTo(ctx context.Context, db queries, consumer string) (number int64, kind string, err error) {
	err = db.QueryRowContext(ctx, s.postgres.Moving, []byte(consumer)).Scan(&number, &kind)
	return number, kind, err
}

// ofActs is ofConsumer for those who write: a move waits for whoever marks by the name of
// the table of days, and for nobody else.
func (s *Store) ofActs(ctx context.Context, consumer string) (*Store, error) {
	if s.postgres == nil || s.days != nil {
		return s, nil
	}
	number, kind, err := s.movingTo(ctx, s.db, consumer)
	if errors.Is(err, sql.ErrNoRows) {
		return s.ofConsumer(ctx, consumer)
	}
	return s.ofDays(consumer, kind, number, err)
}

// ofConsumer is the store where the markers of a consumer are: this one, or one of days.
func (s *Store) ofConsumer(ctx context.Context, consumer string) (*Store, error) {
	if s.postgres == nil || s.days != nil {
		return s, nil
	}
	number, kind, err := s.dated(ctx, s.db, consumer)
	return s.ofDays(consumer, kind, number, err)
}

// ofRow is the store where the marker of a row is, for acts of people.
func (s *Store) ofRow(ctx context.Context, number int64) (*Store, error) {
	stores, err := s.ofRows(ctx, []store.RowRevision{{Number: number}})
	for own := range stores {
		return own, nil
	}
	return nil, err
}

// ofRows is ofRow for several rows: the places of the rows by the store where their markers are.
func (s *Store) ofRows(ctx context.Context, rows []store.RowRevision) (map[*Store][]int, error) {
	stores, byTable, byRow := map[*Store][]int{}, map[int64]*Store{}, map[int64]*Store{}
	if s.postgres != nil && s.days == nil {
		err := eachRow(ctx, s.db, s.postgres.DatedRows, func(found *sql.Rows) error {
			var number, table int64
			var consumer []byte
			var kind string
			err := found.Scan(&number, &consumer, &kind, &table)
			if err == nil && byTable[table] == nil {
				byTable[table], err = s.ofDays(string(consumer), kind, table, nil)
			}
			byRow[number] = byTable[table]
			return err
		}, []any{actedNumbers(numbersSeen(rows)...)})
		if err != nil {
			return nil, s.answer("markers by day", err)
		}
	}
	for i, r := range rows {
		own := byRow[r.Number]
		if own == nil {
			own = s
		}
		stores[own] = append(stores[own], i)
	}
	return stores, nil
}

func (s *Store) ofDays(consumer, kind string, number int64, err error) (*Store, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return nil, s.blameless("markers by day", err)
	}
	idTime, err := kindOf(consumer, kind)
	if err != nil {
		return nil, err
	}
	d := &days{store: s, number: number, Dated: Dated{Consumer: consumer, IDTime: idTime}}
	if err := d.load(); err != nil {
		return nil, err
	}
	return d.view()
}

// kindOf is the kind of a consumer's ids by its name.
func kindOf(consumer, kind string) (identity.IDTime, error) {
	for k := range ceilings {
		if k.String() == kind {
			return k, nil
		}
	}
	return identity.NoIDTime, fmt.Errorf("sqlstore: the markers of consumer %q are kept by day for ids of the kind %q, which this release does not know: %w", consumer, kind, semel.ErrState)
}

// notDated refuses a consumer whose markers lie in a table of days to a store that does not
// look there.
func (s *Store) notDated(ctx context.Context, db queries, consumer string) error {
	if s.postgres == nil || s.days != nil {
		return nil
	}
	_, kind, err := s.dated(ctx, db, consumer)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("the markers of consumer %q are kept by day, for ids of the kind %s, and are not looked for here; say so in its policy, or use Store.Dated: %w", consumer, kind, semel.ErrState)
	}
	return err
}
