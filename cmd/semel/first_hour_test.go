package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// firstBlock returns the first code block in the given language on a page.
func firstBlock(t *testing.T, page, language string) string {
	t.Helper()
	_, text, found := strings.Cut(page, "```"+language+"\n")
	text, _, closed := strings.Cut(text, "```")
	if !found || !closed {
		t.Fatalf("the page has no block of %s", language)
	}
	return text
}

func TestTheFirstHourInGoPrintsWhatThePageShows(t *testing.T) {
	text, err := os.ReadFile("../../docs/start/first-hour-go.md")
	if err != nil {
		t.Fatal(err)
	}
	page, folder := string(text), t.TempDir()
	for name, language := range map[string]string{"main.go": "go", "payments.jsonl": "json"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(firstBlock(t, page, language)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(folder, "shop")
	output(t, ".", "go", "build", "-o", binary, filepath.Join(folder, "main.go"))
	var printed strings.Builder
	for range 2 {
		printed.WriteString("$ go run ./examples/shop <payments.jsonl\n")
		run := exec.Command(binary)
		run.Dir = folder
		if run.Stdin, err = os.Open(filepath.Join(folder, "payments.jsonl")); err != nil {
			t.Fatal(err)
		}
		out, err := run.Output()
		if err != nil {
			t.Fatal(err)
		}
		printed.Write(out)
	}
	if want := firstBlock(t, page, "console"); printed.String() != want {
		t.Errorf("the page shows\n%s\nand the program prints\n%s", want, printed.String())
	}
}
