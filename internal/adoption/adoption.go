package adoption

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/sqlform"
)

// Options contain the names of the user's table and its columns; see sqlstore.Adopted.
type Options struct {
	Consumer, Source, Table, ID            string
	ConsumerColumn, SourceColumn, AtColumn string
	Values                                 map[string]string
}

// Adoption is a table of the user in which Semel keeps its markers (an adopted table), with the texts for the
// statements.
type Adoption struct {
	Options
	table  *Table
	id     *Column
	source *Column // nil if the table has no column for sources
	names  *strings.Replacer
	// owner is a text that identifies the consumer to which the table belongs. Two consumers must not have the same
	// owner.
	owner string

	db     Database
	sql    *sqlform.Postgres
	prefix string
}

// New checks that the user's table can be used for markers (adopted), and records the consumer that uses it. The
// parameter prefix is the prefix of the names of Semel's tables.
func New(ctx context.Context, db Database, sql *sqlform.Postgres, prefix string, o Options) (*Adoption, error) {
	a, err := plan(ctx, db, sql, prefix, o)
	if err == nil {
		err = a.claim(ctx)
	}
	return a, err
}

// Check checks again that the user's table can be used for markers.
func (a *Adoption) Check(ctx context.Context) error {
	_, err := plan(ctx, a.db, a.sql, a.prefix, a.Options)
	return err
}

// Name returns the table's name as written in statements.
func (a *Adoption) Name() string { return a.table.Name }

// Statement replaces the placeholders in the text of a statement.
func (a *Adoption) Statement(text string) string { return a.names.Replace(text) }

// Missing wraps the error of a marker that was not written although no marker exists. The new error contains possible
// causes.
func (a *Adoption) Missing(err error) error {
	return fmt.Errorf("%w: look for a trigger or a rule on the adopted table %s that keeps rows out, and remove it", err, a.table.Name)
}

func plan(ctx context.Context, db Database, sql *sqlform.Postgres, prefix string, o Options) (*Adoption, error) {
	t, err := Describe(ctx, db, &sql.Statements, o.Table)
	if err != nil {
		return nil, err
	}
	a := &Adoption{Options: o, table: t, db: db, sql: sql, prefix: prefix}
	d := postgres()
	if a.id, err = t.IDColumn(o.ID, d.ids); err != nil {
		return nil, err
	}
	if !a.id.Exact {
		return nil, fmt.Errorf("column %s of %s compares ids by a collation that takes different ones for equal: give it another collation: %w", o.ID, t.Name, semel.ErrSchema)
	}
	if o.SourceColumn != "" {
		if a.source, err = t.IDColumn(o.SourceColumn, d.texts); err != nil {
			return nil, err
		}
	}
	if err := a.fill(d); err != nil {
		return nil, err
	}
	return a, a.inspect(ctx)
}

// fill determines the value of each column of a new row, and adds the names of the columns to the statements.
func (a *Adoption) fill(d *dialect) error {
	values := map[string]string{}
	for name, value := range a.Values {
		c, err := a.table.Column(name)
		if err != nil {
			return err
		}
		if values[name], err = c.constant(d, value); err != nil {
			return err
		}
	}
	values[a.ID] = "k.old"
	origin, judges, judged := "null::text", "t."+a.id.Quoted, "k.old"
	if a.source != nil {
		origin, judges, judged = d.source+a.source.Collate, judges+", t."+a.source.Quoted, "(k.old, k.origin)"
		values[a.source.Name] = "k.origin"
	}
	if err := a.fillConsumer(d, values); err != nil {
		return err
	}
	if a.AtColumn != "" {
		if _, err := a.table.IDColumn(a.AtColumn, d.times); err != nil {
			return err
		}
		values[a.AtColumn] = d.now
	}
	columns, all, err := a.table.row(values)
	if err != nil {
		return err
	}
	key, same := a.key(values)
	a.names = strings.NewReplacer("{table}", a.table.Name, "{id}", a.id.Quoted, "{old}", d.id(a.id), "{origin}", origin,
		"{judges}", judges, "{judged}", judged, "{same}", same, "{key}", key, "{columns}", columns, "{values}", all)
	return nil
}

// fillConsumer determines the value of the consumer's column.
func (a *Adoption) fillConsumer(d *dialect, values map[string]string) error {
	a.owner = a.table.Name
	if a.ConsumerColumn == "" {
		return nil
	}
	c, err := a.table.Column(a.ConsumerColumn)
	if err != nil {
		return err
	}
	if values[c.Name] == "" {
		if values[c.Name], err = c.constant(d, a.Consumer); err != nil {
			return err
		}
	}
	a.owner += " " + values[c.Name]
	return nil
}

// constant returns the SQL of a constant value of the column.
func (c *Column) constant(d *dialect, value string) (string, error) {
	if err := c.holds(value, longestOld); err != nil {
		return "", fmt.Errorf("the value for %s has %w: %w", c.Name, err, semel.ErrSchema)
	}
	return d.literal(value) + "::" + c.Kind, nil
}

// key returns the columns of the unique key, and an SQL condition: the row with the alias t has the identity with the
// alias k.
func (a *Adoption) key(values map[string]string) (columns, same string) {
	var names, equal []string
	for _, c := range a.table.Columns {
		if slices.Contains(a.keyed(), c.Name) {
			names, equal = append(names, c.Quoted), append(equal, "t."+c.Quoted+" "+c.equals()+" "+values[c.Name])
		}
	}
	return strings.Join(names, ", "), strings.Join(equal, " and ")
}

// equals returns the operator that compares values of the column. PostgreSQL looks up operators in all schemas of the
// search_path. For some built-in types, such as varchar, PostgreSQL has no operator of its own, so another schema could
// define an operator.
func (c *Column) equals() string {
	if c.BuiltIn {
		return "operator(pg_catalog.=)"
	}
	return "="
}

// keyed returns the names of the columns of the unique key.
func (a *Adoption) keyed() []string {
	return slices.DeleteFunc([]string{a.ID, a.ConsumerColumn, a.SourceColumn}, func(name string) bool { return name == "" })
}

func (t *Table) row(values map[string]string) (columns, all string, err error) {
	var names, texts, missing []string
	for _, c := range t.Columns {
		value, given := values[c.Name]
		switch {
		case given:
			names, texts = append(names, c.Quoted), append(texts, value)
		case c.Needed:
			missing = append(missing, c.Name)
		}
	}
	if missing != nil {
		return "", "", fmt.Errorf("%s takes no row without a value for %s: name what they get, or give them a default: %w",
			t.Name, strings.Join(missing, ", "), semel.ErrSchema)
	}
	return strings.Join(names, ", "), strings.Join(texts, ", "), nil
}

// inspect checks the unique key, the privileges, and whether the table survives a crash of the server. After
// a crash an unlogged table is empty, and messages that other code has applied would be applied again.
func (a *Adoption) inspect(ctx context.Context) error {
	key := a.keyed()
	slices.Sort(key)
	var keyed, allowed bool
	if err := a.db.QueryRowContext(ctx, a.sql.OldKey, a.Table, strings.Join(key, "\n")).Scan(&keyed, &allowed); err != nil {
		return err
	}
	if !keyed {
		columns := strings.Join(key, ", ")
		return fmt.Errorf("%s has no unique key of exactly the columns %s, so a second row would not be rejected: "+
			"create unique index concurrently on %s (%s), or name the columns that its key has: %w", a.table.Name, columns, a.table.Name, columns, semel.ErrSchema)
	}
	if !allowed {
		return fmt.Errorf("the role may not select, insert and delete in %s: grant it: %w", a.table.Name, semel.ErrSchema)
	}
	var remedy string
	if err := a.db.QueryRowContext(ctx, a.sql.OldUnlogged, a.Table).Scan(&remedy); err != nil {
		return err
	}
	if remedy != "" {
		return fmt.Errorf("%s is not kept through a crash of the server: it is unlogged, and if the server crashed since, its rows are gone: %w: %s",
			a.table.Name, semel.ErrSchema, remedy)
	}
	return nil
}

// claim records which consumer has adopted the table. After claim, another consumer cannot use the rows of the table as
// its own markers.
func (a *Adoption) claim(ctx context.Context) error {
	key := "adopted " + a.owner
	owner, err := a.ownerOf(ctx, key)
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := a.db.ExecContext(ctx, a.sql.Setup, key, a.Consumer); err != nil {
			return err
		}
		owner, err = a.ownerOf(ctx, key)
	}
	switch {
	case err != nil:
		return err
	case owner != a.Consumer && a.ConsumerColumn == "":
		return fmt.Errorf("consumer %s has adopted %s, which has no column for the consumer: each would skip what the other has applied; "+
			"use another table, or a column for the consumer that is part of the key; if %s is gone, delete the row %q of %ssetup: %w",
			owner, a.table.Name, owner, key, a.prefix, semel.ErrSchema)
	case owner != a.Consumer:
		return fmt.Errorf("consumer %s has adopted %s with the same value of %s: each would skip what the other has applied; "+
			"give each its own; if %s is gone, delete the row %q of %ssetup: %w",
			owner, a.table.Name, a.ConsumerColumn, owner, key, a.prefix, semel.ErrSchema)
	}
	return nil
}

func (a *Adoption) ownerOf(ctx context.Context, key string) (consumer string, err error) {
	err = a.db.QueryRowContext(ctx, a.sql.SetupName, key).Scan(&consumer)
	return consumer, err
}

// Admit returns an error if the rows of the table cannot distinguish the given consumer, source or generation from
// others.
func (a *Adoption) Admit(consumer, source string, generation int64) error {
	switch {
	case consumer != a.Consumer:
		return fmt.Errorf("this store marks in %s for consumer %s: open another for %s", a.table.Name, a.Consumer, consumer)
	case generation != 0:
		return fmt.Errorf("%s has no column for a generation: %w", a.table.Name, semel.ErrUnsupported)
	case a.source == nil && source != a.Source && !strings.HasPrefix(source, "semel:"):
		return fmt.Errorf("%s has no column for the source and was adopted for %q, and a message has the source %q: "+
			"give the identity a constant source, or the table a column that is part of its key", a.table.Name, a.Source, legible.Printable(source))
	}
	return nil
}
