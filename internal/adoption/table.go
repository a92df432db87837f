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

// Table describes a user's table, as read from the catalogue.
type Table struct {
	Name    string // quoted, with its schema
	Columns []Column
}

// Column is a column of the table.
type Column struct {
	Name   string
	Quoted string // quoted name
	Kind   string // type without length
	Length int    // maximum number of characters; 0 if unlimited
	Needed bool   // not null and without default
	Exact  bool   // values are equal only if their bytes are equal
	// Collate is the COLLATE clause of the column, or empty if there is none. Without the clause, PostgreSQL would not
	// use the index, and would sort in another order.
	Collate string
	// BuiltIn reports that PostgreSQL itself defines the operators of the column's type.
	BuiltIn bool
}

// Database reads the catalogue of the database. A *sql.DB implements Database.
type Database interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Describe reads the description of a user's table. The parameter table is a name as in SQL. If a person must correct
// the table, the error wraps semel.ErrSchema.
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

// Column returns the column with the given name, which must be written as in the catalogue.
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

// IDColumn returns the column of the ids. The type of the column must be one of kinds.
func (t *Table) IDColumn(name string, kinds []string) (*Column, error) {
	c, err := t.Column(name)
	if err == nil && !slices.Contains(kinds, c.Kind) && len(kinds) > 0 {
		return nil, fmt.Errorf("column %s of %s is of type %s, which cannot hold ids: name a column of one of the types %s: %w",
			name, t.Name, c.Kind, strings.Join(kinds, ", "), semel.ErrSchema)
	}
	return c, err
}
