package sqlstore

import (
	"strings"
)

// Violates reports whether err says that a UNIQUE or PRIMARY KEY constraint
// refused a row, and that it was this one: in SQLite its columns as the table
// and the constraint name them, "invoices.number" or "lines.invoice,
// lines.position", or "index 'name'" for an index on an expression. A handler
// whose effect a business key guards returns semel.Duplicate then.
//
// The kind of error is told by its code; the code does not say which
// constraint, so that is read after the colon of the text.
func Violates(err error, constraint string) bool {
	code, ok := methodCode(err)
	if !ok {
		return false
	}
	switch code {
	case sqliteConstraintUnique, sqliteConstraintPrimaryKey, sqliteConstraintRowID:
		return columnsOf(err.Error()) == columnsOf(": "+constraint)
	default:
		return false
	}
}

// columnsOf is what stands after the last colon, without the code that some
// drivers append, in one spelling.
func columnsOf(text string) string {
	columns := text[strings.LastIndex(text, ": ")+1:]
	if at := strings.LastIndex(columns, " ("); at > 0 {
		columns = columns[:at]
	}
	parts := strings.Split(strings.TrimPrefix(columns, ":"), ",")
	for i, p := range parts {
		parts[i] = strings.ToLower(strings.TrimSpace(p))
	}
	return strings.Join(parts, ",")
}
