package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
)

// oldTable is a table that is not Semel's, as the database describes it.
type oldTable struct {
	name    string // as statements write it, with its schema
	columns []oldColumn
}

type oldColumn struct {
	name   string
	quoted string // as statements write it
	kind   string // its type, without length
	length int    // the most characters that it takes; 0 if any number
	needed bool   // not null, and nothing fills it in
	exact  bool   // values are equal only if they are the same
	// collate gives an expression the collation of the column, without which
	// no index is used and the order is another; empty if it has none.
	collate string
}

// describe reads what a table of the user's has; names are as the user writes
// them in SQL. Its errors wrap semel.ErrSchema where a person must act.
func (s *Store) describe(ctx context.Context, table string) (*oldTable, error) {
	t := &oldTable{}
	err := s.db.QueryRowContext(ctx, s.sql.OldTable, table).Scan(&t.name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("there is no table %s: write its name with its schema, and see that the role may use that schema: %w", table, semel.ErrSchema)
	case err != nil:
		return nil, s.hint(err)
	}
	rows, err := s.db.QueryContext(ctx, s.sql.OldColumns, table)
	if err != nil {
		return nil, s.hint(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c oldColumn
		if err := rows.Scan(&c.name, &c.quoted, &c.kind, &c.length, &c.needed, &c.exact, &c.collate); err != nil {
			return nil, err
		}
		t.columns = append(t.columns, c)
	}
	return t, rows.Err()
}

// column is the column of this name, in the spelling of the catalogue.
func (t *oldTable) column(name string) (*oldColumn, error) {
	var known []string
	for i := range t.columns {
		if t.columns[i].name == name {
			return &t.columns[i], nil
		}
		known = append(known, t.columns[i].name)
	}
	return nil, fmt.Errorf("%s has no column %q: its columns are %s: %w", t.name, name, strings.Join(known, ", "), semel.ErrSchema)
}

// idColumn is the column of the ids, of one of these types.
func (t *oldTable) idColumn(name string, kinds []string) (*oldColumn, error) {
	c, err := t.column(name)
	if err == nil && !slices.Contains(kinds, c.kind) && len(kinds) > 0 {
		return nil, fmt.Errorf("column %s of %s is of type %s, which holds no ids that could be compared: name a column of one of the types %s: %w",
			name, t.name, c.kind, strings.Join(kinds, ", "), semel.ErrSchema)
	}
	return c, err
}
