package legible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable makes a text safe for one line of a log or a terminal. Printable escapes control characters, line breaks,
// invisible and direction-changing characters, invalid UTF-8, backslashes, and a space at the beginning or end, with
// the escapes of Go. All other characters stay unchanged. Different texts always give different results.
func Printable(s string) string {
	i := firstEscape(s)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		writeEscaped(&b, s, i, r, size)
		i += size
	}
	return b.String()
}

// firstEscape returns the index of the first character to escape, or len(s).
func firstEscape(s string) int {
	for i, r := range s {
		if needsEscape(s, i, r) {
			return i
		}
	}
	return len(s)
}

func needsEscape(s string, i int, r rune) bool {
	switch r {
	case ' ':
		return i == 0 || i == len(s)-1
	case '\\', utf8.RuneError:
		return true
	}
	return !strconv.IsPrint(r)
}

func writeEscaped(b *strings.Builder, s string, i int, r rune, size int) {
	switch {
	case r == utf8.RuneError && size == 1, r == ' ' && needsEscape(s, i, r):
		fmt.Fprintf(b, `\x%02x`, s[i])
	case !needsEscape(s, i, r):
		b.WriteString(s[i : i+size])
	default:
		quoted := strconv.QuoteToASCII(s[i : i+size])
		b.WriteString(quoted[1 : len(quoted)-1])
	}
}
