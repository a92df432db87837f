package sqlhandler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
)

// Fault is a fault of a statement.
type Fault struct{ Reason, Remedy string }

func (f Fault) Error() string { return f.Reason + "; " + f.Remedy }

// Params returns the names of the parameters in text. Each name is returned once, in order of appearance.
// Params returns an error if text cannot be parsed.
func (d Dialect) Params(text string) ([]string, error) {
	tokens, err := d.text.Scan(text)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tokens {
		if t.Kind == sqltext.Param && !slices.Contains(names, t.Word) {
			names = append(names, t.Word)
		}
	}
	return names, nil
}

// Check returns the faults of a handler's statement. A statement has a fault in these cases:
//
//   - The text cannot be parsed.
//   - The text has no statement, or several statements.
//   - The text has placeholders such as ? or $1.
//   - The statement would end the transaction of marker and effect.
//   - The statement has consequences beyond the transaction.
//   - The statement names Semel's own tables.
func (d Dialect) Check(text string) []Fault {
	if before, _, found := strings.Cut(text, "\x00"); found {
		return []Fault{{fmt.Sprintf("character %d is NUL, where databases stop reading or reject each message", len([]rune(before))+1), "remove it"}}
	}
	tokens, err := d.text.Scan(text)
	if err != nil {
		return []Fault{{err.Error(), "close it"}}
	}
	statements := sqltext.Split(tokens)
	if len(statements) == 0 {
		return []Fault{{"there is no statement", "write one, or remove it"}}
	}
	var faults []Fault
	if len(statements) > 1 {
		faults = append(faults, Fault{fmt.Sprintf("there are %d statements in one text", len(statements)),
			"make each an item of the list"})
	}
	for _, s := range statements {
		faults = append(faults, d.findFaults(s)...)
	}
	if i := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return t.Kind == sqltext.Foreign }); i >= 0 {
		faults = append(faults, Fault{fmt.Sprintf("%s is a placeholder of the database", text[tokens[i].Start:tokens[i].End]),
			"name a parameter, as :account"})
	}
	return faults
}

// countsRows reports whether the database returns the number of changed rows for a statement: an
// insert, update or delete, possibly after WITH.
func countsRows(s sqltext.Statement) bool {
	if !s[0].Is("with") {
		return isChange(s[0])
	}
	depth := 0
	for _, t := range s {
		switch {
		case t.IsSign("("):
			depth++
		case t.IsSign(")"):
			depth--
		case depth == 0 && isChange(t):
			return true
		}
	}
	return false
}

func isChange(t sqltext.Token) bool {
	if t.Kind != sqltext.Name || t.Quoted {
		return false
	}
	switch t.Word {
	case "insert", "update", "delete", "replace", "merge":
		return true
	}
	return false
}

// Changes reports whether the database returns the number of changed rows for the statement text.
func (d Dialect) Changes(text string) bool {
	tokens, err := d.text.Scan(text)
	if err != nil {
		return false
	}
	statements := sqltext.Split(tokens)
	return len(statements) > 0 && countsRows(statements[0])
}
