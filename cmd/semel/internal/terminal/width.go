package terminal

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Unlimited is a width that cuts nothing.
const Unlimited = 0

// Columns returns how many columns of a terminal a text takes.
func Columns(s string) int { return runewidth.StringWidth(s) }

// Cut returns the text, cut to the given columns with an ellipsis at its end if it is longer.
func Cut(s string, columns int) string {
	if columns == Unlimited {
		return s
	}
	return runewidth.Truncate(s, columns, "…")
}

// Parts joins the first parts that fit into the given columns. A part is shown completely or not at
// all, because half a number is a different number; an ellipsis at the end marks missing parts.
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
