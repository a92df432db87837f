package sqlhandler

import (
	"slices"

	"github.com/semel-go/semel/internal/sqltext"
)

// NotNatural returns why a statement is probably not idempotent, or "" if the statement looks idempotent.
// NotNatural finds two patterns: a column that is computed from itself, such as x = x + 1, and an insert
// that can happen twice.
//
// The result is a guess and is only used for a warning. NotNatural does not understand triggers, defaults,
// functions or conditions in a WHERE clause, so it also warns about some correct statements. To be sure that
// a handler is idempotent, run the handler twice and with the messages in another order.
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

// insertsAgain finds an INSERT without OR IGNORE, OR REPLACE, ON CONFLICT or ON DUPLICATE.
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

// selfAssigned returns a column that a SET clause computes from itself, or "" if there is none.
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

// assignment has the left and the right side of an assignment in a SET clause.
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

// self returns the assigned column if the right side contains arithmetic and reads the column, otherwise "".
func (a assignment) self() string {
	if !slices.ContainsFunc(a.right, isArithmetic) {
		return ""
	}
	for i, t := range a.left {
		qualifier := i+1 < len(a.left) && a.left[i+1].Word == "."
		if t.Kind == sqltext.Name && !qualifier && a.readsOld(t.Word) {
			return t.Word
		}
	}
	return ""
}

// readsOld reports whether the right side of an assignment reads the old value of the assigned column.
// A column that is qualified with EXCLUDED or another table has a new value.
func (a assignment) readsOld(column string) bool {
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
