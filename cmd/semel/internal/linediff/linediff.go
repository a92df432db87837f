// Package linediff shows the differences between two payloads, line by line.
package linediff

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Payloads returns the unified diff of two payloads, or "" if their lines are equal. JSON is formatted with
// Pretty before the comparison. If a payload is not text, Payloads returns false.
func Payloads(before, after []byte) (string, bool) {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return "", false
	}
	// Add a final line break, because otherwise the diff would contain "\ No newline at end of file".
	text := udiff.Unified("", "", Pretty(before)+"\n", Pretty(after)+"\n")
	_, text, _ = strings.Cut(text, "\n+++ \n") // remove the lines with file names
	return text, true
}

// Pretty returns JSON with indentation. Other text is returned unchanged.
func Pretty(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return string(body)
	}
	return b.String()
}
