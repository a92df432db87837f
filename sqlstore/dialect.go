package sqlstore

import (
	"database/sql"
	"fmt"
	"io/fs"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// dialect is what differs between databases beside the text of their SQL.
type dialect struct {
	// name names the folder of the dialect's SQL and appears in errors.
	name  string
	files fs.FS
	// fill gives a store the dialect's statements.
	fill func(s *Store, texts map[string]string) error
	// writers is how many transactions may write at once; 0 is any number.
	writers int
	// lengths are those for which statements with a list are prepared, the longest
	// that one may have first and 1 last; none: any number, given as an array a
	// column.
	lengths []int
	// text says how the text of SQL is read.
	text sqltext.Dialect
	// bind begins a numbered parameter.
	bind string
	// moment is a time to compare with a column; its parameter ? is in
	// milliseconds since 1970.
	moment string
	// now is the time by the database's clock, to compare with a column.
	now string
	// isolation is the level that is asked for with BEGIN where no handler runs.
	isolation sql.IsolationLevel
	// handle is what a driver's connection offers beside database/sql; nil if
	// nothing is looked for.
	handle func(conn any) handle
	// commitHook: the one of a driver's connection is used, if it has one.
	commitHook bool
	// coded reports whether an error has the database's own code.
	coded func(err error) bool
	// believes says that an error with such a code is taken for the database's
	// also where the transaction goes on.
	believes bool
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
	// ids are the types of a column of ids that is not Semel's; any if empty.
	ids []string
	// old writes the value of such a column as bytes, and what a value read
	// before is compared with.
	old func(c *adoption.Column) (value, last string)
	// rolledBack reports whether an error of COMMIT proves that nothing was
	// committed.
	rolledBack func(err error) bool
}

var (
	prefixForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)
	schemaForm = regexp.MustCompile(`^[^"'\\{}\x00-\x1f]{1,63}$`)
	listForm   = regexp.MustCompile(`(?s)\{list:(.*?)\}`)
)

// load reads the dialect's statements, puts the names in, and has what is built in named with
// its schema; see sqltext.Dialect.Exact.
func (d *dialect) load(names *strings.Replacer, files ...string) (map[string]string, error) {
	texts := make([]string, len(files))
	for i, name := range files {
		text, err := fs.ReadFile(d.files, d.name+"/"+name)
		if err != nil {
			return nil, err
		}
		if texts[i], err = d.exact(names, string(text)); err != nil {
			return nil, fmt.Errorf("sqlstore: %s/%s: %w", d.name, name, err)
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

// exact puts the names into a text and has what is built in named with its schema.
func (d *dialect) exact(names *strings.Replacer, text string) (string, error) {
	text, schema := names.Replace(text), names.Replace("{schema}")
	if d.text.Catalog == "" || !strings.HasPrefix(schema, `"`) { // names of one table are no others'
		return d.text.Exact(text)
	}
	common := strings.ReplaceAll(text, schema, anySchema)
	known, found := exacts.Load(common)
	if !found {
		made, err := d.text.Exact(common)
		if err != nil {
			return "", err
		}
		known, _ = exacts.LoadOrStore(common, made)
	}
	return strings.ReplaceAll(known.(string), anySchema, schema), nil
}

// names are what stands for tables in a dialect's SQL: {prefix} before every
// name of a table, view or function, {name} before what takes no schema.
func (d *dialect) names(o Options) (*strings.Replacer, error) {
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

// bulk is a statement over tuples and its arguments, which are the tuples one
// after the other.
func (s *Store) bulk(statement string, width int, flat []any) (text string, args []any) {
	if len(s.dialect.lengths) == 0 {
		return statement, arrays(width, flat)
	}
	return list(statement, len(flat)/width), flat
}

// chunks are the pieces of a list that statements take.
func (d *dialect) chunks(of []int) iter.Seq[[]int] {
	if len(d.lengths) == 0 {
		return slices.Values([][]int{of})
	}
	return slices.Chunk(of, d.lengths[0])
}

// list is the statement with its {list:tuple} repeated n times.
func list(statement string, n int) string {
	at := listForm.FindStringSubmatchIndex(statement)
	tuple := statement[at[2]:at[3]]
	return statement[:at[0]] + strings.Repeat(tuple+", ", n-1) + tuple + statement[at[1]:]
}
