// Package terminal prints untrusted text. The printed text cannot control the terminal or forge a line. The
// package also fits text to the width of the terminal.
package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/semel-go/semel/internal/legible"
)

// Line returns a text as one line without control characters. Line escapes the same characters as
// legible.Printable, except backslashes and spaces. Backslashes and spaces are harmless, and common in paths
// and quoted texts.
func Line(s string) string {
	return escape(s, func(r rune) bool { return r == '\\' || strconv.IsPrint(r) })
}

// escape keeps all characters for which plain returns true and escapes the others with legible.Printable.
func escape(s string, plain func(rune) bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if plain(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(s[i : i+size])
		} else {
			b.WriteString(legible.Printable(s[i : i+size]))
		}
		i += size
	}
	return b.String()
}

// Text returns a writer that escapes control characters, except line breaks and tabs, in all output. Text is
// the last protection, but Text cannot tell a line break in a payload from a line break of the program. If
// one call of Write ends within a character, the bytes of the character are escaped separately.
func Text(w io.Writer) io.Writer {
	return writer{w, func(s string) string {
		return escape(s, func(r rune) bool { return r == '\n' || r == '\t' || r == '\\' || strconv.IsPrint(r) })
	}}
}

// JSON returns a writer for JSON documents. Control characters in strings are written as JSON escapes, so
// the values do not change.
func JSON(w io.Writer) io.Writer { return writer{w, escapeJSON} }

func escapeJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch first, second := utf16.EncodeRune(r); {
		case r == '\n' || strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, first, second)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

type writer struct {
	w      io.Writer
	escape func(string) string
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.escape(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// maxErrorLength is the maximum number of printed characters of one error.
const maxErrorLength = 2000

// Lines returns the lines of an error. If the error joins several errors, each has its own line, with the
// text of the errors that wrap the join. Line breaks in error texts are escaped, so a payload cannot start a
// line.
func Lines(err error) []string {
	var lines []string
	for _, text := range errorTexts(err) {
		line := []rune(Line(text))
		if more := len(line) - maxErrorLength; more > 0 {
			line = append(line[:maxErrorLength], []rune(fmt.Sprintf("… (%d characters more)", more))...)
		}
		lines = append(lines, string(line))
	}
	return lines
}

func errorTexts(err error) []string {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var all, plain []string
		for _, one := range e.Unwrap() {
			if one != nil {
				all, plain = append(all, errorTexts(one)...), append(plain, one.Error())
			}
		}
		if strings.Join(plain, "\n") == err.Error() {
			return all
		}
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		if inner == nil {
			break
		}
		before, ok := strings.CutSuffix(err.Error(), inner.Error())
		if !ok {
			break
		}
		all := errorTexts(inner)
		for i := range all {
			all[i] = before + all[i]
		}
		return all
	}
	return []string{err.Error()}
}
