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

// Dialect contains the differences between databases, except the text of their SQL.
type Dialect struct {
	// Name names the folder of the dialect's SQL and appears in errors.
	Name  string
	Files fs.FS
	// fill sets the dialect's statements of a store.
	fill func(s *DB, texts map[string]string) error
	// Writers is how many transactions may write at once; 0 means no limit.
	Writers int
	// Lengths are the lengths of lists for which statements are prepared, the longest first
	// and 1 last. If it is empty, lists of any length are passed as one array for each column.
	Lengths []int
	// Text is the syntax of the dialect's SQL.
	Text sqltext.Dialect
	// Bind is the start of a numbered parameter.
	Bind string
	// Moment is an SQL expression for a time; its parameter ? is in milliseconds since 1970.
	Moment string
	// Now is an SQL expression for the time by the database's clock.
	Now string
	// Isolation is the isolation level of transactions without handlers.
	Isolation sql.IsolationLevel
	// handle returns additional functions of a driver's connection; nil if the dialect needs
	// none.
	handle func(conn any) handle
	// commitHook: use the commit hook of a driver's connection, if it has one.
	commitHook bool
	// Coded reports whether an error has the database's own code.
	Coded func(err error) bool
	// Believes: an error with such a code is taken for the database's own even if the
	// transaction continues.
	Believes bool
	// classify returns the class of an error by its code; 0 if it has no code.
	classify func(err error) store.Class
	// exonerates reports whether an error means that another transaction holds a lock, or that
	// the database lacks something that every transaction needs.
	exonerates func(err error) bool
	// outdated reports whether an error comes from outdated state of a connection, so that a
	// new connection helps; nil if there are no such errors.
	outdated func(err error) bool
	// remedy returns what to do about an error; empty if unknown.
	remedy func(err error) string
	// ownRemedy returns what to do about an error of the store's own statements. The advice
	// would be misleading for other statements.
	ownRemedy func(err error) string
	// Ids are the allowed types of a user's column of ids; empty means any.
	Ids []string
	// Old returns SQL expressions for such a column: its value as bytes, and the last value
	// read, to compare with.
	Old func(c *adoption.Column) (value, last string)
	// RolledBack reports whether an error of COMMIT proves that nothing was
	// committed.
	RolledBack func(err error) bool
}

// Load reads the dialect's statements and inserts the names. Load qualifies built-in objects
// with their schema; see sqltext.Dialect.Exact.
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

// exacts caches the results of sqltext.Dialect.Exact by text, with a placeholder for the
// schema. Scanning all files takes longer than the rest of opening a store, and the stores of
// a process differ at most by the schema.
var exacts sync.Map

// anySchema is the placeholder for the schema's name in exacts. No schema can have this name.
const anySchema = `"{schema}"`

// Exact inserts the names into a text and qualifies built-in objects with their schema.
func (d *Dialect) Exact(names *strings.Replacer, text string) (string, error) {
	text, schema := names.Replace(text), names.Replace("{schema}")
	if d.Text.Catalog == "" || !strings.HasPrefix(schema, `"`) { // texts with table names are not shared
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

// names returns the replacements for table names in a dialect's SQL: {prefix} precedes every
// name of a table, view or function, and {name} every name that takes no schema.
func (d *Dialect) names(o Options) (*strings.Replacer, error) {
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
