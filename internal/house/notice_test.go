package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Section 4(d) of the Apache License requires that a distributor passes on the NOTICE files of the
// components.
func TestTheNoticeNamesEachModuleOfTheBinaryThatHasOne(t *testing.T) {
	text, err := os.ReadFile(root + "/NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./cmd/semel")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen, found := map[string]bool{}, 0
	for line := range strings.Lines(string(out)) {
		module, folder, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || seen[module] {
			continue
		}
		seen[module] = true
		notices, err := filepath.Glob(filepath.Join(folder, "NOTICE*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range notices {
			found++
			notice, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "\n"+module+"\n") || !strings.Contains(string(text), strings.TrimSpace(string(notice))) {
				t.Errorf("NOTICE does not contain %s of %s: copy its text", filepath.Base(path), module)
			}
		}
	}
	if found == 0 {
		t.Error("found no NOTICE in any module of the binary; the search is broken")
	}
}
