package adoption

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
)

// Table is a table that is not Semel's, as the database describes it.
type Table struct {
	Name    string // as statements write it, with its schema
	Columns []Column
}

// Column is one of its columns.
type Column struct {
	Name   string
	Quoted string // as statements write it
	Kind   string // its type, without length
	Length int    // the most characters that it takes; 0 if any number
	Needed bool   // not null, and nothing fills it in
	Exact  bool   // values are equal only if they are the same
	// Collate gives an expression the collation of the column, without which
	// no index is used and the order is another; empty if it has none.
	Collate string
	// BuiltIn: the operators of its type are PostgreSQL's own.
	BuiltIn bool
}

// Database is what reads the catalogue: a *sql.DB.
type Database interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Describe reads what a table of the user's has; names are as the user writes
// them in SQL. Its errors wrap semel.ErrSchema where a person must act.
func Describe(ctx context.Context, db Database, s *sqlform.Statements, table string) (*Table, error) {
	t := &Table{}
	err := db.QueryRowContext(ctx, s.OldTable, table).Scan(&t.Name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("there is no table %s: write its name with its schema, and see that the role may use that schema: %w", table, semel.ErrSchema)
	case err != nil:
		return nil, err
	}
	rows, err := db.QueryContext(ctx, s.OldColumns, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c Column
		if err := rows.Scan(&c.Name, &c.Quoted, &c.Kind, &c.Length, &c.Needed, &c.Exact, &c.Collate, &c.BuiltIn); err != nil {
			return nil, err
		}
		t.Columns = append(t.Columns, c)
	}
	return t, rows.Err()
}

// Column is the column of this name, in the spelling of the catalogue.
func (t *Table) Column(name string) (*Column, error) {
	var known []string
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i], nil
		}
		known = append(known, t.Columns[i].Name)
	}
	return nil, fmt.Errorf("%s has no column %q: its columns are %s: %w", t.Name, name, strings.Join(known, ", "), semel.ErrSchema)
}

// IDColumn is the column of the ids, of one of these types.
func (t *Table) IDColumn(name string, kinds []string) (*Column, error) {
	c, err := t.Column(name)
	if err == nil && !slices.Contains(kinds, c.Kind) && len(kinds) > 0 {
		return nil, fmt.Errorf("column %s of %s is of type %s, which holds no ids that could be compared: name a column of one of the types %s: %w",
			name, t.Name, c.Kind, strings.Join(kinds, ", "), semel.ErrSchema)
	}
	return c, err
}
