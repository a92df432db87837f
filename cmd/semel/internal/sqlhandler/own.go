package sqlhandler

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
)

// ownTableNames has the names of Semel's tables, without prefix.
var ownTableNames = []string{"scopes", "markers", "guard", "guard_end", "inbox", "acts", "positions", "setup", "migrations"}

// readable is the name of the view of markers, without prefix. Statements may read the view.
const readable = "markers_readable"

// ownTables rejects statements that name Semel's own tables. The parser does not know every place where a table
// name is allowed. It therefore rejects the names of Semel's own tables in every place.
func (d Dialect) ownTables(s sqltext.Statement) (faults []Fault) {
	if d.prefix == "" {
		return nil
	}
	for i, t := range s {
		if t.Kind == sqltext.Name && d.isOwn(t.Word, ownTableNames...) && !d.isOtherSchema(s[:i]) {
			faults = append(faults, Fault{"this names " + t.Word + ", one of Semel's own tables, in which it records effects",
				"use your own tables; read markers from " + d.prefix + readable + ", and close rows of the inbox with semel messages"})
		}
		if target := d.ownTarget(s[i:]); target != "" {
			faults = append(faults, Fault{t.Word + " writes " + target + ", which belongs to Semel", "write to your own tables"})
		}
	}
	return faults
}

// isOtherSchema reports whether a name is qualified with a schema that is not the schema of Semel's tables.
func (d Dialect) isOtherSchema(before []sqltext.Token) bool {
	n := len(before)
	return d.schema != "" && n > 1 && before[n-1].IsSign(".") && before[n-2].Kind == sqltext.Name &&
		!strings.EqualFold(before[n-2].Word, d.schema)
}

// isOwn reports whether a lower-case name is the prefix followed by one of the given names.
func (d Dialect) isOwn(name string, these ...string) bool {
	rest, is := strings.CutPrefix(name, strings.ToLower(d.prefix))
	return is && slices.Contains(these, rest)
}

// ownTarget returns a table of Semel that a change writes to, in two cases that ownTables does not reject.
// The first case that ownTables does not reject is the view of markers, whose name is allowed for reading.
// The second case that ownTables does not reject is a table name in string quotes, which SQLite accepts. If
// neither case applies, ownTarget returns "".
func (d Dialect) ownTarget(rest []sqltext.Token) string {
	schema, t := target(rest)
	switch {
	case d.isOtherSchema(schema):
		return ""
	case t.Kind == sqltext.Name && d.isOwn(t.Word, readable),
		t.Kind == sqltext.Literal && d.isOwn(t.Word, append(slices.Clone(ownTableNames), readable)...):
		return t.Word
	}
	return ""
}

// target returns the table that a change writes to, and the tokens before the table's name. If the tokens do
// not start with a change, the function target returns zero values.
func target(rest []sqltext.Token) (schema []sqltext.Token, table sqltext.Token) {
	if !isChange(rest[0]) {
		return nil, sqltext.Token{}
	}
	rest = rest[1:]
	for len(rest) > 0 && (rest[0].IsSign("(") || slices.ContainsFunc(
		[]string{"or", "into", "from", "only", "rollback", "abort", "fail", "ignore", "replace"}, rest[0].Is)) {
		rest = rest[1:]
	}
	at := 0
	if len(rest) > 2 && rest[1].IsSign(".") {
		at = 2
	}
	if at >= len(rest) {
		return nil, sqltext.Token{}
	}
	return rest[:at], rest[at]
}
