package sqlhandler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
)

// findFaults returns why a statement is not allowed in a handler, or nil for an allowed statement.
func (d Dialect) findFaults(s sqltext.Statement) []Fault {
	if !s.Begins() {
		return []Fault{{fmt.Sprintf("this does not begin like a statement, but with %+q", s[0].Word),
			"begin with insert, update, delete or another SQL word, and write only ASCII blanks before it"}}
	}
	if f := refusesVerb(s); f != (Fault{}) {
		return []Fault{f}
	}
	return slices.Concat(d.escapedNames(s), makesTable(s), d.ownTables(s), d.findOutliving(s))
}

// refusesVerb checks the first word of a statement. refusesVerb returns the zero Fault for an allowed word.
func refusesVerb(s sqltext.Statement) Fault {
	verb := strings.ToUpper(s[0].Word)
	switch s[0].Word {
	case "select", "insert", "update", "delete", "merge", "replace", "with", "values", "table", "call", "notify", "(":
		return Fault{}
	case "do":
		return Fault{"DO runs code that cannot be checked here, has no parameters, and fails with each message if it commits or rolls back",
			"make it a function in the store's setup file, and call it with values of the message: select f(:x)"}
	case "begin", "commit", "end", "rollback", "abort", "savepoint", "release", "start":
		return Fault{verb + " controls the transaction, which also contains the marker and other messages of the batch",
			"remove it; Semel begins and commits"}
	case "pragma", "attach", "detach", "set", "reset", "discard", "listen", "unlisten", "prepare", "deallocate", "execute", "load":
		return Fault{verb + " changes the connection, not the data, and would outlive the message or the transaction",
			"remove it; use the store's setup file for what happens once"}
	case "lock":
		return Fault{"LOCK blocks other users of the table until the whole batch has committed", "remove it; statements lock the rows that they change"}
	case "copy":
		return Fault{"COPY reads or writes a file or the connection itself, not values of the message", "use insert"}
	case "create", "drop", "alter", "reindex", "analyze", "truncate", "grant", "revoke", "comment", "cluster", "vacuum", "refresh", "security":
		return Fault{verb + " changes the schema or whole tables with each message", "put it into the store's setup file"}
	}
	return Fault{verb + " is not a statement that a handler can run for a message", "begin with insert, update, delete, merge, select, with or call"}
}

// escapedNames rejects PostgreSQL's names with code points, U&"…". A name with code points would evade every
// check of names.
func (d Dialect) escapedNames(s sqltext.Statement) []Fault {
	for i := 2; d.text.DollarBodies && i < len(s); i++ {
		if s[i].Quoted && s[i-1].IsSign("&") && s[i-2].Is("u") && s[i-2].End == s[i-1].Start && s[i-1].End == s[i].Start {
			return []Fault{{`U&"…" writes a name with code points, so the name is not readable`, `write the name itself, as "name"`}}
		}
	}
	return nil
}

// makesTable rejects SELECT … INTO, which creates a table. makesTable looks at every INTO that is not a name
// and does not belong to an insert or merge.
func makesTable(s sqltext.Statement) []Fault {
	for i, t := range s {
		if t.Is("into") && !isLabel(s[:i]) && !isOfChange(s[:i]) {
			return []Fault{{"SELECT … INTO creates a table with each message", "insert into an existing table"}}
		}
	}
	return nil
}

// isLabel reports whether the next token must be a name, because the previous token is AS or a dot.
func isLabel(before []sqltext.Token) bool {
	n := len(before)
	return n > 0 && (before[n-1].IsSign(".") || before[n-1].Is("as"))
}

// isOfChange reports whether the tokens before an INTO belong to a change: INSERT, REPLACE, MERGE, or INSERT
// OR followed by a word. The change must be at the start of the statement or after WITH. In other places, the
// word insert could be the name of a column.
func isOfChange(before []sqltext.Token) bool {
	n := len(before)
	if n > 2 && before[n-2].Is("or") {
		n -= 2
	}
	if n == 0 || !isChange(before[n-1]) {
		return false
	}
	if n == 1 {
		return true
	}
	last := before[n-2]
	return !last.IsSign(",") && !last.IsSign(".") && !last.Is("select") && !last.Is("distinct") && !last.Is("all")
}

// sessionLocks are functions that take locks beyond the transaction, or that release the locks of other
// messages.
var sessionLocks = []string{
	"pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock", "pg_try_advisory_lock_shared",
	"pg_advisory_unlock", "pg_advisory_unlock_shared", "pg_advisory_unlock_all",
}

// findOutliving rejects statements with consequences beyond the transaction.
func (d Dialect) findOutliving(s sqltext.Statement) (faults []Fault) {
	for i, t := range s {
		if _, table := target(s[i:]); table.Kind == sqltext.Name && table.Word == "pg_settings" {
			faults = append(faults, Fault{"an update of pg_settings changes the session, and would outlive the message and the transaction", "remove it"})
		}
		if t.Kind != sqltext.Name || i+1 >= len(s) || !s[i+1].IsSign("(") {
			continue
		}
		switch {
		case slices.Contains(sessionLocks, t.Word):
			faults = append(faults, Fault{t.Word + " takes or releases a lock of the session, which outlives the message and the transaction",
				"use pg_advisory_xact_lock, which ends with the transaction"})
		case t.Word == "set_config" && !d.singleMessage:
			faults = append(faults, Fault{"set_config stays in force for the messages that follow in the same batch, which is one transaction",
				"write batch: {max_size: 1} at the consumer, and give true as the third argument"})
		case t.Word == "set_config" && !isLocal(s[i+1:]):
			faults = append(faults, Fault{"set_config changes the session, and would outlive the message and the transaction",
				"give true as its third argument: then the setting ends with the transaction"})
		}
	}
	return faults
}

// isLocal reports whether the last argument of the call is the word true.
func isLocal(call []sqltext.Token) bool {
	depth := 0
	for i, t := range call {
		switch {
		case t.IsSign("("):
			depth++
		case t.IsSign(")"):
			depth--
		}
		if depth == 0 {
			return i > 1 && call[i-1].Is("true") && call[i-2].IsSign(",")
		}
	}
	return false
}
