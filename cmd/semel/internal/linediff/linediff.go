// Package linediff shows the differences between two payloads, line by line.
package linediff

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// Payloads returns a unified diff of two payloads, empty if they have the same lines. JSON is compared as Pretty
// prints it. Payloads returns false if one of them is not text.
func Payloads(before, after []byte) (string, bool) {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return "", false
	}
	// Without the final line break the diff would contain "\ No newline at end of file".
	text := udiff.Unified("", "", Pretty(before)+"\n", Pretty(after)+"\n")
	_, text, _ = strings.Cut(text, "\n+++ \n") // without the file names
	return text, true
}

// Pretty returns indented JSON; other text is returned unchanged.
func Pretty(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return string(body)
	}
	return b.String()
}
