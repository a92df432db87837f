package sqlhandler

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
)

// own are the names of Semel's tables without their prefix.
var own = []string{"scopes", "markers", "guard", "guard_end", "inbox", "acts", "positions", "setup", "migrations"}

// readable is the view of the markers, which statements may read.
const readable = "markers_readable"

// ownTables finds Semel's own tables in a statement. A statement may not even name them: this parser
// does not know every place where a database accepts a table, and a statement that names none of them
// writes to none.
func (d Dialect) ownTables(s sqltext.Statement) (faults []Fault) {
	if d.prefix == "" {
		return nil
	}
	for i, t := range s {
		if t.Kind == sqltext.Name && d.isOwn(t.Word, own...) && !d.elsewhere(s[:i]) {
			faults = append(faults, Fault{"this names " + t.Word + ", one of Semel's own tables, in which it records effects",
				"use your own tables; read markers from " + d.prefix + readable + ", and close rows of the inbox with semel messages"})
		}
		if target := d.ownTarget(s[i:]); target != "" {
			faults = append(faults, Fault{t.Word + " writes " + target + ", which belongs to Semel", "write to your own tables"})
		}
	}
	return faults
}

// elsewhere reports whether a name is qualified with a schema other than that of Semel's tables.
func (d Dialect) elsewhere(before []sqltext.Token) bool {
	n := len(before)
	return d.schema != "" && n > 1 && before[n-1].IsSign(".") && before[n-2].Kind == sqltext.Name &&
		!strings.EqualFold(before[n-2].Word, d.schema)
}

// isOwn reports whether a lower-case name is the prefix followed by one of these names.
func (d Dialect) isOwn(name string, these ...string) bool {
	rest, is := strings.CutPrefix(name, strings.ToLower(d.prefix))
	return is && slices.Contains(these, rest)
}

// ownTarget returns the target of a change if it is Semel's own and not plainly named: the view, which
// may be read, or a table in string quotes, which SQLite accepts as a table name. ownTarget returns
// nothing if rest does not begin with a change.
func (d Dialect) ownTarget(rest []sqltext.Token) string {
	schema, t := target(rest)
	switch {
	case d.elsewhere(schema):
		return ""
	case t.Kind == sqltext.Name && d.isOwn(t.Word, readable),
		t.Kind == sqltext.Literal && d.isOwn(t.Word, append(slices.Clone(own), readable)...):
		return t.Word
	}
	return ""
}

// target returns the changed table if rest begins with a change, and the tokens before its name;
// otherwise nothing.
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
