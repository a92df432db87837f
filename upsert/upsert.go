// Package upsert writes an SQL statement that keeps each row at its newest version. The
// statement inserts the row, or changes it if the stored version is older.
//
// The statement is idempotent: a duplicate or an older version changes nothing. Messages may arrive in any order, and
// versions may be missing. Use package upsert for effects that replace a state (a search index, a cache, a read model),
// and not for effects that add to a state. If every version must take effect in order, use consumer.VersionPolicy.
package upsert

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Newer describes the statement for one table. If two transactions write the same key at the same time, the newer
// version wins. If the row has the same or a newer version, the statement changes no row: the first content of a
// version stays. A row whose version is NULL is older than every version, and a NULL version replaces no row. In
// SQLite, where a column can hold values of any type, a version that is not a number is older than a number.
type Newer struct {
	// Table is the name of the table. If the table is not in the search path, put the schema and a dot in front of the
	// name.
	Table string
	// Key lists the columns of the primary key, or of another unique key.
	Key []string
	// Set lists the other columns to write.
	Set []string
	// Version is the column of the version: a number that the producer counts for each key. Do
	// not use times: they can be equal or go backwards.
	Version string
}

// PostgreSQL returns the statement with the parameters $1, $2 and so on, for the columns of
// Key, of Set, and Version, in this order.
func (n Newer) PostgreSQL() (string, error) {
	return n.text(older, func(i int, _ string) string { return "$" + strconv.Itoa(i) })
}

// SQLite returns the statement with the parameters ?1, ?2 and so on, in the same order as
// PostgreSQL.
func (n Newer) SQLite() (string, error) {
	return n.text(olderOfAnyKind, func(i int, _ string) string { return "?" + strconv.Itoa(i) })
}

// Named returns PostgreSQL's statement with parameters that are named like the columns, as in a
// policy file: :article.
func (n Newer) Named() (string, error) { return n.text(older, named) }

// NamedSQLite returns SQLite's statement with parameters that are named like the columns.
func (n Newer) NamedSQLite() (string, error) { return n.text(olderOfAnyKind, named) }

func named(_ int, column string) string { return ":" + column }

// older returns the SQL condition that the stored version is older than the new version.
func older(version string) string { return "present." + version + " < excluded." + version }

// olderOfAnyKind does the same as older, for columns that can hold values of any type. In SQLite every text is greater
// than every number, so a text as version would block its row permanently.
func olderOfAnyKind(version string) string {
	ranked := func(row string) string {
		return "(typeof(" + row + "." + version + ") in ('integer', 'real'), " + row + "." + version + ")"
	}
	return ranked("present") + " < " + ranked("excluded")
}

// columns returns the columns in the order of the parameters.
func (n Newer) columns() []string { return slices.Concat(n.Key, n.Set, []string{n.Version}) }

// Validate returns an error that lists all faults.
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

// quoted returns a name as a quoted SQL identifier, so that it is never read as a keyword.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
