package terminal

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Unlimited is the width that never cuts text.
const Unlimited = 0

// Columns returns the width of a text on a terminal, in columns.
func Columns(s string) int { return runewidth.StringWidth(s) }

// Cut cuts a text to the given width. A text that was cut ends with an ellipsis.
func Cut(s string, columns int) string {
	if columns == Unlimited {
		return s
	}
	return runewidth.Truncate(s, columns, "…")
}

// Parts joins as many parts as fit into the given width, in order. A part is never cut, because a part of a
// number would be a wrong number. If parts are missing, the result ends with an ellipsis.
func Parts(columns int, parts ...string) string {
	const between, missing = "  ", "  …"
	whole := strings.Join(parts, between)
	if columns == Unlimited || Columns(whole) <= columns {
		return whole
	}
	line := ""
	for _, part := range parts {
		next := line + between + part
		if line == "" {
			next = part
		}
		if Columns(next+missing) <= columns {
			line = next
		}
	}
	return Cut(strings.TrimLeft(line+missing, " "), columns)
}
