package database

import (
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// Dialect has the differences between databases, except the text of their SQL.
type Dialect struct {
	// Name is the name of the folder with the dialect's SQL. Errors also contain the name of the dialect.
	Name  string
	Files fs.FS
	// fill sets the statements of the dialect in a store.
	fill func(s *DB, texts map[string]string) error
	// Writers is the number of transactions that may write at the same time; 0 means no limit.
	Writers int
	// Lengths are the list lengths for which statements are prepared, from the longest to 1. If Lengths is
	// empty, a list of any length is passed as one array for each column.
	Lengths []int
	// Text is the syntax of the dialect's SQL.
	Text sqltext.Dialect
	// Bind is the prefix of a numbered parameter.
	Bind string
	// Moment is an SQL expression for a time. The parameter ? of the expression is the time in milliseconds since 1970.
	Moment string
	// Now is an SQL expression for the current time of the database's clock.
	Now string
	// Isolation is the isolation level of transactions without handlers.
	Isolation sql.IsolationLevel
	// handleOf finds functions of a driver's connection that database/sql does not have; nil if the dialect needs none
	// of these functions.
	handleOf func(conn any) handle
	// The field commitHook is true if the store sets the commit hook of a driver's connection, provided that the
	// connection has a commit hook.
	commitHook bool
	// Coded reports whether an error has an error code of the database, such as a SQLSTATE.
	Coded func(err error) bool
	// Believes is true if an error with an error code of the database counts as an error of the database, even though
	// the transaction continues.
	Believes bool
	// classify returns the class of an error by its code; 0 if the error has no code.
	classify func(err error) store.Class
	// isStoreFault reports whether an error means that another transaction holds a lock, or that the
	// database lacks a resource that every transaction needs.
	isStoreFault func(err error) bool
	// isOutdated reports whether an error comes from an outdated connection, so that a new connection helps; nil if
	// connections of the dialect do not become outdated.
	isOutdated func(err error) bool
	// The function remedy returns advice for an operator about an error; empty if there is no advice.
	remedy func(err error) string
	// The function ownRemedy returns advice for an operator about an error of the store's own statements. For other
	// statements, the advice of ownRemedy would be misleading.
	ownRemedy func(err error) string
	// Ids are the allowed types of the id column in a user's table; empty means any type.
	Ids []string
	// Old returns two SQL expressions for the id column of a user's table: the value as bytes, and the last
	// value that was read.
	Old func(c *adoption.Column) (value, last string)
	// RolledBack reports whether an error of COMMIT proves that nothing was committed.
	RolledBack func(err error) bool
}

// Load reads the dialect's statements and inserts the names of tables. Load also adds the schema to the names of
// built-in objects; see sqltext.Dialect.Exact.
func (d *Dialect) Load(names *strings.Replacer, files ...string) (map[string]string, error) {
	texts := make([]string, len(files))
	for i, name := range files {
		text, err := fs.ReadFile(d.Files, d.Name+"/"+name)
		if err != nil {
			return nil, err
		}
		if texts[i], err = d.Exact(names, string(text)); err != nil {
			return nil, fmt.Errorf("sqlstore: %s/%s: %w", d.Name, name, err)
		}
	}
	return sqlform.Texts(texts...)
}

// A cache of the results of sqltext.Dialect.Exact. The keys are texts with a placeholder for the schema, because the
// stores of a process usually differ only by the schema. Without the cache, the scan of all files would take longer
// than the rest of opening a store.
var exacts sync.Map

// The placeholder for the schema in the cache exacts. No schema can have this name.
const anySchema = `"{schema}"`

// Exact inserts the names of tables into a text, and adds the schema to the names of built-in objects.
func (d *Dialect) Exact(names *strings.Replacer, text string) (string, error) {
	text, schema := names.Replace(text), names.Replace("{schema}")
	if d.Text.Catalog == "" || !strings.HasPrefix(schema, `"`) { // a text whose names have no quoted schema is not cached
		return d.Text.Exact(text)
	}
	common := strings.ReplaceAll(text, schema, anySchema)
	known, found := exacts.Load(common)
	if !found {
		made, err := d.Text.Exact(common)
		if err != nil {
			return "", err
		}
		known, _ = exacts.LoadOrStore(common, made)
	}
	return strings.ReplaceAll(known.(string), anySchema, schema), nil
}

// nameReplacer returns the replacements for placeholders in a dialect's SQL: {prefix} is the prefix of every name
// of a table, view or function, and {name} the prefix of every name that cannot have a schema.
func (d *Dialect) nameReplacer(o Options) (*strings.Replacer, error) {
	if !prefixForm.MatchString(o.Prefix) {
		return nil, fmt.Errorf("sqlstore: table prefix %q: use a letter or underscore, then at most 31 letters, digits or underscores", o.Prefix)
	}
	if o.Schema == "" {
		return strings.NewReplacer("{prefix}", o.Prefix, "{name}", o.Prefix), nil
	}
	if !schemaForm.MatchString(o.Schema) {
		return nil, fmt.Errorf("sqlstore: schema %q: use at most 63 bytes without quotes", o.Schema)
	}
	schema := `"` + o.Schema + `"`
	return strings.NewReplacer("{prefix}", schema+"."+o.Prefix, "{name}", o.Prefix, "{schema}", schema), nil
}
