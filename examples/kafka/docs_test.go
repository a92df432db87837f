package example

import (
	"os"
	"strings"
	"testing"
)

// TestTheDocumentShowsTheProgram keeps docs/kafka.md and balances/main.go one.
func TestTheDocumentShowsTheProgram(t *testing.T) {
	document, err := os.ReadFile("../../docs/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("balances/main.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(document), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("the document shows no Go")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(string(program), block) {
			t.Errorf("these lines are not in the program:\n%s", block)
		}
	}
}
