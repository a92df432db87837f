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

// Dialect is what differs between databases beside the text of their SQL.
type Dialect struct {
	// Name names the folder of the dialect's SQL and appears in errors.
	Name  string
	Files fs.FS
	// fill gives a store the dialect's statements.
	fill func(s *DB, texts map[string]string) error
	// Writers is how many transactions may write at once; 0 is any number.
	Writers int
	// Lengths are those for which statements with a list are prepared, the longest
	// that one may have first and 1 last; none: any number, given as an array a
	// column.
	Lengths []int
	// Text says how the text of SQL is read.
	Text sqltext.Dialect
	// Bind begins a numbered parameter.
	Bind string
	// Moment is a time to compare with a column; its parameter ? is in
	// milliseconds since 1970.
	Moment string
	// Now is the time by the database's clock, to compare with a column.
	Now string
	// Isolation is the level that is asked for with BEGIN where no handler runs.
	Isolation sql.IsolationLevel
	// handle is what a driver's connection offers beside database/sql; nil if
	// nothing is looked for.
	handle func(conn any) handle
	// commitHook: the one of a driver's connection is used, if it has one.
	commitHook bool
	// Coded reports whether an error has the database's own code.
	Coded func(err error) bool
	// Believes says that an error with such a code is taken for the database's
	// also where the transaction goes on.
	Believes bool
	// classify judges an error by its code; 0 if it has none.
	classify func(err error) store.Class
	// exonerates reports whether an error says that somebody else holds a lock,
	// or that the database lacks what every transaction needs.
	exonerates func(err error) bool
	// outdated reports whether an error is of what connections keep and a new one
	// has not; nil if there is no such error.
	outdated func(err error) bool
	// remedy says what to do about an error; empty if it cannot tell.
	remedy func(err error) string
	// ownRemedy says what to do about an error of the store's own statements
	// that would mislead about those of others.
	ownRemedy func(err error) string
	// Ids are the types of a column of ids that is not Semel's; any if empty.
	Ids []string
	// Old writes the value of such a column as bytes, and what a value read
	// before is compared with.
	Old func(c *adoption.Column) (value, last string)
	// RolledBack reports whether an error of COMMIT proves that nothing was
	// committed.
	RolledBack func(err error) bool
}

// Load reads the dialect's statements, puts the names in, and has what is built in named with
// its schema; see sqltext.Dialect.Exact.
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

// exacts holds, by a text of this package's files with its names but for the schema, what
// sqltext.Dialect.Exact makes of it. Reading all files takes longer than all else that opening
// a store does, and what a process opens differs by the schema at most.
var exacts sync.Map

// anySchema is the placeholder for the schema's name in exacts. No schema has this name.
const anySchema = `"{schema}"`

// Exact puts the names into a text and has what is built in named with its schema.
func (d *Dialect) Exact(names *strings.Replacer, text string) (string, error) {
	text, schema := names.Replace(text), names.Replace("{schema}")
	if d.Text.Catalog == "" || !strings.HasPrefix(schema, `"`) { // names of one table are no others'
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

// names are what stands for tables in a dialect's SQL: {prefix} before every
// name of a table, view or function, {name} before what takes no schema.
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
