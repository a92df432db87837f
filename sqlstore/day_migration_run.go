package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
)

// BeginMove begins to move markers of a consumer from the table of all into a table of days,
// while its processes work. From then on Dated opens for it, and processes that use the
// store which it returns may run beside those that do not: until EndMove both mark in the
// table of all. Only ids in the one spelling that a store of days has are fit for the
// former. Move means nothing here. It takes the right to create tables in the schema.
//
// A move that has begun is no error. semel.ErrState: the markers lie in a table of days, or
// move there for ids of another kind. semel.ErrUnsupported as with Dated.
func (s *Store) BeginMove(ctx context.Context, o Dated) error { return s.beginMove(ctx, o) }

// beginMove begins a move to days, unless one has begun.
func (s *Store) beginMove(ctx context.Context, o Dated) error {
	if err := s.keepsDays(&o); err != nil {
		return err
	}
	m := &move{days: &days{store: s, Dated: o}}
	return s.answer("move to days", s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.postgres.LockDated); err != nil {
			return err
		}
		if found, err := m.find(ctx, tx); err != nil || found {
			if err == nil && !m.moving {
				err = fmt.Errorf("the markers of consumer %q lie in a table of days: %w", o.Consumer, semel.ErrState)
			}
			return err
		}
		return m.begin(ctx, tx)
	}))
}

// move is a table of days that fills while its consumer marks in the table of all.
type move struct {
	*days
	moves sqlform.Moving
	// named are the statements about the table as it is named when it has moved.
	named sqlform.Dated
}

// filling is what the table's name has behind it meanwhile.
const filling = "_days"

// load reads the statements: those about the table as it is named while it fills.
func (m *move) load() error {
	return errors.Join(m.fill(&m.sql, "dated.sql", filling), m.fill(&m.named, "dated.sql", ""), m.fill(&m.moves, "moving.sql", ""))
}

func (m *move) begin(ctx context.Context, tx *sql.Tx) error {
	// The statement's text has no number yet.
	if err := m.load(); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, m.moves.NewMoving, []byte(m.Consumer), m.IDTime.String()).Scan(&m.number); err != nil {
		return err
	}
	if err := m.load(); err != nil {
		return err
	}
	if err := execAll(ctx, tx, m.sql.Create, m.moves.StandIn); err != nil {
		return err
	}
	wanted, err := m.daysFrom(ctx, tx, "")
	if err != nil {
		return err
	}
	return m.makeAll(ctx, tx, wanted, nil)
}

// makeAll makes those of the days that do not stand.
func (m *move) makeAll(ctx context.Context, tx *sql.Tx, wanted, stand []day) error {
	for i := range wanted {
		if covered(stand, &wanted[i]) {
			continue
		}
		if err := m.make(ctx, tx, &wanted[i]); err != nil {
			return err
		}
	}
	return nil
}

// daysFrom are the days from a first one, or from as far back as is asked for, up to three
// after this one.
func (m *move) daysFrom(ctx context.Context, tx *sql.Tx, first string) ([]day, error) {
	rows, err := tx.QueryContext(ctx, m.moves.DaysFrom, first, m.Back)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []day
	for rows.Next() {
		var w day
		if err := rows.Scan(&w.name, &w.from, &w.to, &w.next); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, rows.Err()
}

// all are the days from the first that was made up to three after this one, which are made
// if they are missing.
func (m *move) all(ctx context.Context, tx *sql.Tx) ([]day, error) {
	if _, err := tx.ExecContext(ctx, m.sql.Hexadecimal); err != nil {
		return nil, err
	}
	stand, err := m.standing(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(stand) == 0 {
		return nil, fmt.Errorf("the table of days of consumer %q has no day any more: %w", m.Consumer, semel.ErrSchema)
	}
	wanted, err := m.daysFrom(ctx, tx, dateOf(stand[0].name))
	if err != nil {
		return nil, err
	}
	return wanted, m.makeAll(ctx, tx, wanted, stand)
}

// dateOf is the date that the name of a day ends with.
func dateOf(name string) string {
	return strings.Trim(name[strings.LastIndexByte(name, '_')+1:], `"`)
}

// scopesOf are the numbers of a consumer's scopes.
func (m *move) scopesOf(ctx context.Context, db queries) (all []int64, err error) {
	rows, err := db.QueryContext(ctx, m.moves.ScopesOf, []byte(m.Consumer))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}
