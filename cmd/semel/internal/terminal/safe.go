// Package terminal prints untrusted text so that it cannot control a terminal or forge a line, and so
// that it fits the width.
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

// Line makes a text one harmless line. Line escapes what legible.Printable escapes, except
// backslashes and spaces, which are harmless and common in paths and quoted texts.
func Line(s string) string {
	return escape(s, func(r rune) bool { return r == '\\' || strconv.IsPrint(r) })
}

// escape keeps the characters that plain allows and passes the rest to legible.Printable.
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

// Text is a writer that escapes control characters in everything written to it, except line ends and
// tabs. Text is the last line of defence: it cannot distinguish a line feed of a payload from one of
// the program. A character split over two calls of Write is escaped byte by byte.
func Text(w io.Writer) io.Writer {
	return writer{w, func(s string) string {
		return escape(s, func(r rune) bool { return r == '\n' || r == '\t' || r == '\\' || strconv.IsPrint(r) })
	}}
}

// JSON is a writer for JSON documents. Inside strings it writes control characters as JSON escapes, so
// the values stay the same.
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

// longest is how many characters of one error are printed.
const longest = 2000

// Lines returns the lines of an error: one for each error that it joins, each with the text wrapped
// around them. A line feed in an error text is escaped, so no payload begins a line.
func Lines(err error) []string {
	var lines []string
	for _, text := range texts(err) {
		line := []rune(Line(text))
		if more := len(line) - longest; more > 0 {
			line = append(line[:longest], []rune(fmt.Sprintf("… (%d characters more)", more))...)
		}
		lines = append(lines, string(line))
	}
	return lines
}

func texts(err error) []string {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var all, plain []string
		for _, one := range e.Unwrap() {
			if one != nil {
				all, plain = append(all, texts(one)...), append(plain, one.Error())
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
		all := texts(inner)
		for i := range all {
			all[i] = before + all[i]
		}
		return all
	}
	return []string{err.Error()}
}
