package terminal

import "strings"

// Wrap breaks long lines between words to the given width and indents the further lines. A single word is
// never broken.
func Wrap(text string, columns int) string {
	if columns == Unlimited || Columns(text) <= columns {
		return text
	}
	const indent = "  "
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(text, " ") {
		switch width := Columns(word); {
		case i == 0:
			at = width
		case at+1+width > columns:
			b.WriteString("\n" + indent)
			at = len(indent) + width
		default:
			b.WriteString(" ")
			at += 1 + width
		}
		b.WriteString(word)
	}
	return b.String()
}
