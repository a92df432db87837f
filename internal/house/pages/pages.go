// Package pages helps tests to check that the code in a document is equal to the compiled code.
package pages

import (
	"os"
	"strings"
	"testing"
)

// Read returns the concatenated text of files.
func Read(t testing.TB, files ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// Shows checks that a document has blocks of Go code (at least as many as the parameter least says), and that the
// parameter code contains the text of each block.
func Shows(t testing.TB, document string, least int, code string) {
	t.Helper()
	blocks := strings.Split(Read(t, document), "```go\n")[1:]
	if len(blocks) < least {
		t.Fatalf("%s shows %d blocks of Go, want at least %d", document, len(blocks), least)
	}
	for _, block := range blocks {
		if block, _, _ = strings.Cut(block, "```"); !strings.Contains(code, block) {
			t.Errorf("%s shows these lines, which the code does not contain:\n%s", document, block)
		}
	}
}
