package sqlhandler

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a statement.
type Fault struct{ Reason, Remedy string }

func (f Fault) Error() string { return f.Reason + "; " + f.Remedy }

// Params are the names of the parameters in text, each once, in order. The
// error says why it cannot be read.
func (d Dialect) Params(text string) ([]string, error) {
	tokens, err := d.scan(text)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tokens {
		if t.kind == param && !slices.Contains(names, t.word) {
			names = append(names, t.word)
		}
	}
	return names, nil
}

// Check returns what makes text unfit as a statement of a handler: it cannot
// be read, is several statements or none, has placeholders of another kind, or
// would end the transaction that marker and effect share.
func (d Dialect) Check(text string) []Fault {
	tokens, err := d.scan(text)
	if err != nil {
		return []Fault{{err.Error(), "close it"}}
	}
	statements := split(tokens)
	if len(statements) == 0 {
		return []Fault{{"there is no statement", "write one, or remove it"}}
	}
	var faults []Fault
	if len(statements) > 1 {
		faults = append(faults, Fault{fmt.Sprintf("there are %d statements in one text", len(statements)),
			"make each an item of the list"})
	}
	for _, s := range statements {
		faults = append(faults, controls(s)...)
	}
	if i := slices.IndexFunc(tokens, func(t token) bool { return t.kind == foreign }); i >= 0 {
		faults = append(faults, Fault{fmt.Sprintf("%s is a placeholder of the database", text[tokens[i].start:tokens[i].end]),
			"name a parameter, as :account"})
	}
	return faults
}

// split cuts tokens at semicolons and drops blanks; a statement of nothing is
// none. Bodies of triggers are no business of a handler.
func split(tokens []token) [][]token {
	var all [][]token
	var one []token
	for _, t := range tokens {
		switch {
		case t.kind == space:
		case t.kind == operator && t.word == ";":
			if len(one) > 0 {
				all, one = append(all, one), nil
			}
		default:
			one = append(one, t)
		}
	}
	if len(one) > 0 {
		all = append(all, one)
	}
	return all
}

// controls refuses a statement that is no business of a handler.
func controls(s []token) []Fault {
	first := s[0]
	if first.kind != name || first.quoted {
		return []Fault{{"this does not begin like a statement", "begin with insert, update, delete or another SQL word"}}
	}
	verb := strings.ToUpper(first.word)
	switch first.word {
	case "begin", "commit", "end", "rollback", "abort", "savepoint", "release", "start":
		return []Fault{{verb + " controls the transaction, in which the marker and its neighbours commit with this effect",
			"remove it; Semel begins and commits"}}
	case "pragma", "attach", "detach", "vacuum", "set", "reset", "discard", "lock", "listen", "unlisten", "prepare", "deallocate", "execute":
		return []Fault{{verb + " changes the connection, not the data, and would outlive the message or the transaction",
			"remove it; use the store's setup file for what happens once"}}
	case "create", "drop", "alter", "reindex", "analyze", "truncate", "grant", "revoke":
		return []Fault{{verb + " changes the schema with each message", "put it into the store's setup file"}}
	}
	return nil
}

// changes reports whether a statement says how many rows it changed: one that
// inserts, updates or deletes, also behind WITH.
func changes(s []token) bool {
	if s[0].word != "with" {
		return isChange(s[0])
	}
	depth := 0
	for _, t := range s {
		switch {
		case t.kind == operator && t.word == "(":
			depth++
		case t.kind == operator && t.word == ")":
			depth--
		case depth == 0 && isChange(t):
			return true
		}
	}
	return false
}

func isChange(t token) bool {
	if t.kind != name || t.quoted {
		return false
	}
	switch t.word {
	case "insert", "update", "delete", "replace", "merge":
		return true
	}
	return false
}

// Changes reports whether text is a statement that says how many rows it
// changed.
func (d Dialect) Changes(text string) bool {
	tokens, err := d.scan(text)
	if err != nil {
		return false
	}
	statements := split(tokens)
	return len(statements) > 0 && changes(statements[0])
}

// Try asks the database to prepare each statement, without running any: a
// missing table or column is found before it costs every message. It returns
// the index of the first statement that was refused, and the error.
func (h *Handler) Try(ctx context.Context, db *sql.DB) (statement int, err error) {
	for i := range h.statements {
		prepared, err := db.PrepareContext(ctx, h.statements[i].text)
		if err != nil {
			return i, err
		}
		if err := prepared.Close(); err != nil {
			return i, err
		}
	}
	return 0, nil
}
