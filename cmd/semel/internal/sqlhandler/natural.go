package sqlhandler

import "slices"

// NotNatural says why a statement does not look idempotent by nature; empty if
// it does. It is a heuristic, for a warning: it looks for a column that is
// computed from itself (x = x + …) and for an insert that nothing stops from
// happening twice. The proof is to run the handler twice and reordered.
//
// It sees neither what triggers, defaults and functions do nor a guard in the
// WHERE clause, so it warns of some statements that are right.
func (d Dialect) NotNatural(text string) string {
	tokens, err := d.scan(text)
	if err != nil {
		return ""
	}
	for _, s := range split(tokens) {
		switch {
		case selfAssigned(s) != "":
			return "it computes column " + selfAssigned(s) + " from itself, so that a second copy adds again"
		case insertsAgain(s):
			return "it inserts without a conflict clause, so that a second copy inserts again or fails"
		}
	}
	return ""
}

// insertsAgain: INSERT without OR IGNORE, OR REPLACE, ON CONFLICT or ON DUPLICATE.
func insertsAgain(s []token) bool {
	i := slices.IndexFunc(s, func(t token) bool { return isKeyword(t, "insert") })
	if i < 0 || i+1 < len(s) && isKeyword(s[i+1], "or") {
		return false
	}
	for j := i; j+1 < len(s); j++ {
		if isKeyword(s[j], "on") && (isKeyword(s[j+1], "conflict") || isKeyword(s[j+1], "duplicate")) {
			return false
		}
	}
	return true
}

// selfAssigned is a column that a SET clause computes from itself.
func selfAssigned(s []token) string {
	for i, t := range s {
		if !isKeyword(t, "set") && !(isKeyword(t, "update") && i > 0 && isKeyword(s[i-1], "key")) {
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
type assignment struct{ left, right []token }

func assignments(s []token) []assignment {
	var all []assignment
	var now assignment
	var assigned bool
	depth := 0
	for _, t := range s {
		switch {
		case t.word == "(" && t.kind == operator:
			depth++
		case t.word == ")" && t.kind == operator:
			depth--
		}
		switch {
		case depth == 0 && endsSet(t):
			return append(all, now)
		case depth == 0 && t.kind == operator && t.word == ",":
			all, now, assigned = append(all, now), assignment{}, false
		case depth == 0 && !assigned && t.kind == operator && t.word == "=":
			assigned = true
		case assigned:
			now.right = append(now.right, t)
		default:
			now.left = append(now.left, t)
		}
	}
	return append(all, now)
}

func endsSet(t token) bool {
	return isKeyword(t, "where") || isKeyword(t, "from") || isKeyword(t, "returning") || isKeyword(t, "order") || isKeyword(t, "limit")
}

// self is the assigned column that stands on the right beside an arithmetic
// operator; empty if none.
func (a assignment) self() string {
	if !slices.ContainsFunc(a.right, isArithmetic) {
		return ""
	}
	for i, t := range a.left {
		qualifier := i+1 < len(a.left) && a.left[i+1].word == "."
		if t.kind == name && !qualifier && a.uses(t.word) {
			return t.word
		}
	}
	return ""
}

// uses reports whether the right side reads the column; a column of EXCLUDED
// or of another row's name is the new value, not the old one.
func (a assignment) uses(column string) bool {
	for i, t := range a.right {
		if t.kind != name || t.word != column {
			continue
		}
		if i >= 2 && a.right[i-1].word == "." && (a.right[i-2].word == "excluded" || a.right[i-2].word == "new") {
			continue
		}
		return true
	}
	return false
}

func isArithmetic(t token) bool {
	return t.kind == operator && (t.word == "+" || t.word == "-" || t.word == "*" || t.word == "/" || t.word == "||")
}

func isKeyword(t token, word string) bool { return t.kind == name && !t.quoted && t.word == word }
