package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// namedTarget finds the targets of make that a page shows: in inline code, and at the beginning of
// a line of a block.
var namedTarget = regexp.MustCompile("(?m)(?:`|^ *)make ([a-z][a-z0-9-]*)(?: [^`\n]*?)?(?:`| *#| *$)")

func TestEachTargetOfMakeThatAPageNamesExists(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	for _, page := range append(pages, root+"/README.md", root+"/CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range namedTarget.FindAllStringSubmatch(string(text), -1) {
			named[found[1]] = filepath.Base(page)
		}
	}
	if len(named) < 20 {
		t.Fatalf("only %d targets were found", len(named))
	}
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := os.ReadFile(root + "/scripts/commands")
	if err != nil {
		t.Fatal(err)
	}
	for target, page := range named {
		if target != "test" && target != "verify" && !regexp.MustCompile(`(?m)^try `+target+`( |$)`).Match(commands) {
			t.Errorf("%s names make %s, which scripts/commands does not try", page, target)
		}
		if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
			t.Errorf("%s names make %s, and the Makefile has no such target", page, target)
		}
	}
}

// A go.sum or go.work.sum that a command completes makes a clone dirty, and figures are stamped so.
func TestListingAllModulesLeavesTheSumsAsTheyAre(t *testing.T) {
	sums, err := filepath.Glob(root + "/go.*sum")
	if err != nil || len(sums) == 0 {
		t.Fatal(sums, err)
	}
	before := map[string]string{}
	for _, path := range sums {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before[path] = string(text)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "all")
	list.Dir = root
	if out, err := list.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for path, was := range before {
		if text, err := os.ReadFile(path); err != nil || string(text) != was {
			t.Errorf("go list -m all changed %s: commit what it added (%v)", filepath.Base(path), err)
		}
	}
}
