// Package linediff shows what differs between two payloads, line by line.
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
	// The line break at the end keeps "\ No newline at end of file" out of the diff.
	text := udiff.Unified("", "", Pretty(before)+"\n", Pretty(after)+"\n")
	_, text, _ = strings.Cut(text, "\n+++ \n") // without the names of files
	return text, true
}

// Pretty is JSON on several lines; anything else as it is.
func Pretty(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return string(body)
	}
	return b.String()
}
