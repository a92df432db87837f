package sqlhandler

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
)

// own are the names of Semel's tables without their prefix.
var own = []string{"scopes", "markers", "guard", "guard_end", "inbox", "acts", "positions", "setup", "migrations"}

// readable is the view of the markers, which is there to be read.
const readable = "markers_readable"

// ownTables finds what is Semel's own in a statement. Its tables may not even
// be named: where a database takes a table is more than is read here, and a
// statement that names none of them writes none.
func (d Dialect) ownTables(s sqltext.Statement) (faults []Fault) {
	if d.prefix == "" {
		return nil
	}
	for i, t := range s {
		if t.Kind == sqltext.Name && d.isOwn(t.Word, own...) && !d.elsewhere(s[:i]) {
			faults = append(faults, Fault{"this names " + t.Word + ", a table of Semel's own, in which it remembers what has taken effect",
				"use tables of yours; read markers in " + d.prefix + readable + ", and close rows of the inbox with semel parked"})
		}
		if target := d.ownTarget(s[i:]); target != "" {
			faults = append(faults, Fault{t.Word + " writes " + target + ", which is Semel's own", "write tables of yours"})
		}
	}
	return faults
}

// elsewhere reports whether what stands before a name is a schema that is not
// the one of Semel's tables.
func (d Dialect) elsewhere(before []sqltext.Token) bool {
	n := len(before)
	return d.schema != "" && n > 1 && before[n-1].IsSign(".") && before[n-2].Kind == sqltext.Name &&
		!strings.EqualFold(before[n-2].Word, d.schema)
}

// isOwn reports whether a name in lower case is one of these behind the prefix.
func (d Dialect) isOwn(name string, these ...string) bool {
	rest, is := strings.CutPrefix(name, strings.ToLower(d.prefix))
	return is && slices.Contains(these, rest)
}

// ownTarget is what a change is made to if it is Semel's and not plainly named:
// the view, which may be read, or a table in the quotes of a text, which SQLite
// takes for a name where a table must stand. It is empty where rest begins with
// no change.
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

// target is the table that is changed where rest begins with a change, and what
// stands before its name; otherwise nothing.
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
