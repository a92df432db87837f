package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// recordingTB is a testing.TB that records errors and does not stop the test.
type recordingTB struct {
	testing.TB
	errors []string
}

func (t *recordingTB) Helper() {}

func (t *recordingTB) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

func (t *recordingTB) Fatalf(format string, args ...any) { t.Errorf(format, args...) }

func TestEachBlockOfADocumentIsInTheCode(t *testing.T) {
	document := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(document, []byte("A page:\n```go\na := 1\n```\nand\n```sh\nls\n```\n```go\nb := 2\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		least  int
		code   string
		errors int
	}{
		{"all of them", 2, "func f() {\na := 1\nb := 2\n", 0},
		{"one is missing", 2, "a := 1\n", 1},
		{"there are too few", 3, "a := 1\nb := 2\n", 1},
	} {
		judge := &recordingTB{TB: t}
		Shows(judge, document, c.least, c.code)
		if len(judge.errors) != c.errors {
			t.Errorf("%s: %q", c.name, judge.errors)
		}
	}
}
