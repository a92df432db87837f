package sqlhandler

import (
	"slices"

	"github.com/semel-go/semel/internal/sqltext"
)

// NotNatural returns why a statement does not look naturally idempotent; empty if it does.
// NotNatural is a heuristic for a warning: it looks for a column computed from itself (x = x + …)
// and for an insert that can happen twice. The proof is to run the handler twice and reordered.
//
// It sees neither triggers, defaults and functions nor a guard in the WHERE clause, so it warns of
// some statements that are correct.
func (d Dialect) NotNatural(text string) string {
	tokens, err := d.text.Scan(text)
	if err != nil {
		return ""
	}
	for _, s := range sqltext.Split(tokens) {
		switch {
		case selfAssigned(s) != "":
			return "it computes column " + selfAssigned(s) + " from itself, so a second copy would add again"
		case insertsAgain(s):
			return "it inserts without a conflict clause, so a second copy would insert again or fail"
		}
	}
	return ""
}

// insertsAgain: INSERT without OR IGNORE, OR REPLACE, ON CONFLICT or ON DUPLICATE.
func insertsAgain(s []sqltext.Token) bool {
	i := slices.IndexFunc(s, func(t sqltext.Token) bool { return t.Is("insert") })
	if i < 0 || i+1 < len(s) && s[i+1].Is("or") {
		return false
	}
	for j := i; j+1 < len(s); j++ {
		if s[j].Is("on") && (s[j+1].Is("conflict") || s[j+1].Is("duplicate")) {
			return false
		}
	}
	return true
}

// selfAssigned returns a column that a SET clause computes from itself.
func selfAssigned(s []sqltext.Token) string {
	for i, t := range s {
		if !t.Is("set") && !(t.Is("update") && i > 0 && s[i-1].Is("key")) {
			continue
		}
		for _, a := range assignments(s[i+1:]) {
			if column := a.self(); column != "" {
				return column
			}
		}
	}
	return ""
}

// assignment is the two sides of one "=" of a SET clause.
type assignment struct{ left, right []sqltext.Token }

func assignments(s []sqltext.Token) []assignment {
	var all []assignment
	var now assignment
	var assigned bool
	depth := 0
	for _, t := range s {
		switch {
		case t.Word == "(" && t.Kind == sqltext.Operator:
			depth++
		case t.Word == ")" && t.Kind == sqltext.Operator:
			depth--
		}
		switch {
		case depth == 0 && endsSet(t):
			return append(all, now)
		case depth == 0 && t.Kind == sqltext.Operator && t.Word == ",":
			all, now, assigned = append(all, now), assignment{}, false
		case depth == 0 && !assigned && t.Kind == sqltext.Operator && t.Word == "=":
			assigned = true
		case assigned:
			now.right = append(now.right, t)
		default:
			now.left = append(now.left, t)
		}
	}
	return append(all, now)
}

func endsSet(t sqltext.Token) bool {
	return t.Is("where") || t.Is("from") || t.Is("returning") || t.Is("order") || t.Is("limit")
}

// self returns the assigned column if the right side uses it beside an arithmetic operator; empty if
// none.
func (a assignment) self() string {
	if !slices.ContainsFunc(a.right, isArithmetic) {
		return ""
	}
	for i, t := range a.left {
		qualifier := i+1 < len(a.left) && a.left[i+1].Word == "."
		if t.Kind == sqltext.Name && !qualifier && a.uses(t.Word) {
			return t.Word
		}
	}
	return ""
}

// uses reports whether the right side reads the column. A column of EXCLUDED or of another row's name
// is the new value, not the old one.
func (a assignment) uses(column string) bool {
	for i, t := range a.right {
		if t.Kind != sqltext.Name || t.Word != column {
			continue
		}
		if i >= 2 && a.right[i-1].Word == "." && (a.right[i-2].Word == "excluded" || a.right[i-2].Word == "new") {
			continue
		}
		return true
	}
	return false
}

func isArithmetic(t sqltext.Token) bool {
	return t.Kind == sqltext.Operator && (t.Word == "+" || t.Word == "-" || t.Word == "*" || t.Word == "/" || t.Word == "||")
}
