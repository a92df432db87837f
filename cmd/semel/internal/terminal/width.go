package terminal

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Unlimited is a width that cuts nothing.
const Unlimited = 0

// Columns is how many columns of a terminal a text takes.
func Columns(s string) int { return runewidth.StringWidth(s) }

// Cut is the text, or as much of it as fits into so many columns, with an
// ellipsis at its end.
func Cut(s string, columns int) string {
	if columns == Unlimited {
		return s
	}
	return runewidth.Truncate(s, columns, "…")
}

// Parts joins those parts that fit into so many columns; the first ones have
// the first say. A part is shown whole or not at all, because half a number is
// another number; an ellipsis at the end says that some are missing.
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
