// Package upsert writes the statement that keeps a projection at the newest version of
// what it shows: a row is inserted, or changed if the version that it has is older.
//
// Such a statement is idempotent by itself: a copy, and a version that comes late, changes
// nothing, in whatever order they come, and versions may be left out. It keeps the last
// state, so it is for effects that are a state (a search index, a cache, a read model) and
// not for what adds to one. Where every version has to take effect, in order, a consumer
// has consumer.VersionPolicy.
package upsert

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Newer is the statement for a table. Two transactions that write one key at once end with
// the newer version, whichever comes first. One that changes no row has met the same
// version, or a newer one: of two contents with one version the first stays. A row without
// a version (NULL) is older than any, and a NULL version replaces none. In
// SQLite, where a column may hold values of any kind, a version that is no number is older
// than one that is.
type Newer struct {
	// Table is the table, with its schema before a dot if it is not found without.
	Table string
	// Key are the columns of its primary key, or of another unique one.
	Key []string
	// Set are the other columns that are written.
	Set []string
	// Version is the column of the version, whose values can be compared: a number that
	// the producer counts for each key. Times can be equal and go backwards.
	Version string
}

// PostgreSQL is the statement with the parameters $1, $2 and so on: the columns of Key, of
// Set, and Version.
func (n Newer) PostgreSQL() (string, error) {
	return n.text(older, func(i int, _ string) string { return "$" + strconv.Itoa(i) })
}

// SQLite is the statement with the parameters ?1, ?2 and so on, in the order of PostgreSQL's.
func (n Newer) SQLite() (string, error) {
	return n.text(olderOfAnyKind, func(i int, _ string) string { return "?" + strconv.Itoa(i) })
}

// Named is PostgreSQL's statement with parameters that are called as the columns are, as a
// policy file has them: :article.
func (n Newer) Named() (string, error) { return n.text(older, named) }

// NamedSQLite is SQLite's statement with parameters that are called as the columns are.
func (n Newer) NamedSQLite() (string, error) { return n.text(olderOfAnyKind, named) }

func named(_ int, column string) string { return ":" + column }

// older is whether the row that is there has an older version than the one that comes.
func older(version string) string { return "present." + version + " < excluded." + version }

// olderOfAnyKind is older where a column may hold values of any kind: SQLite has every text
// greater than every number, and one text would keep its key for ever.
func olderOfAnyKind(version string) string {
	ranked := func(row string) string {
		return "(typeof(" + row + "." + version + ") in ('integer', 'real'), " + row + "." + version + ")"
	}
	return ranked("present") + " < " + ranked("excluded")
}

// columns are those of the statement, in the order of its parameters.
func (n Newer) columns() []string { return slices.Concat(n.Key, n.Set, []string{n.Version}) }

// Validate reports every fault at once.
func (n Newer) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(n.Key) == 0 {
		fault("Key is empty: name the columns of the table's unique key")
	}
	if n.Version == "" {
		fault("Version is empty: name the column that says which of two states is newer")
	}
	for _, part := range strings.Split(n.Table, ".") {
		if part == "" || strings.ContainsRune(part, 0) {
			fault("Table is %q: name the table, with its schema before one dot if it needs one", n.Table)
			break
		}
	}
	seen := map[string]bool{}
	for _, column := range n.columns() {
		switch {
		case column == "" && n.Version != "" || strings.ContainsRune(column, 0):
			fault("%q is no column", column)
		case seen[column]:
			fault("the column %q stands there twice", column)
		}
		seen[column] = true
	}
	return errors.Join(faults...)
}

func (n Newer) text(older func(version string) string, parameter func(i int, column string) string) (string, error) {
	if err := n.Validate(); err != nil {
		return "", fmt.Errorf("upsert: %w", err)
	}
	var names, values, sets []string
	for i, column := range n.columns() {
		names, values = append(names, quoted(column)), append(values, parameter(i+1, column))
		if i >= len(n.Key) {
			sets = append(sets, quoted(column)+" = excluded."+quoted(column))
		}
	}
	parts := strings.Split(n.Table, ".")
	for i := range parts {
		parts[i] = quoted(parts[i])
	}
	version := quoted(n.Version)
	return fmt.Sprintf("insert into %s as present (%s) values (%s)\non conflict (%s) do update set %s\nwhere present.%s is null or %s",
		strings.Join(parts, "."), strings.Join(names, ", "), strings.Join(values, ", "), strings.Join(names[:len(n.Key)], ", "), strings.Join(sets, ", "), version, older(version)), nil
}

// quoted is a name as SQL's grammar has it, so that none is a word of it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
