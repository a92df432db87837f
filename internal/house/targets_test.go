package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedTarget is a pattern for the make targets in a page, with the name of a fault test or measurement, in inline code
// and at the start of a line in a code block.
var namedTarget = regexp.MustCompile("(?m)(?:`|^ *)make ([a-z][a-z0-9-]*)(?: NAME=([a-z0-9-]+))?(?: [^`\n]*?)?(?:`| *#| *$)")

// untried contains the targets that scripts/commands does not run. Without a name, the targets proof and
// bench print their names.
var untried = []string{"test", "verify", "proof", "bench"}

func TestEachTargetOfMakeThatAPageNamesExistsAndIsTried(t *testing.T) {
	pages := []string{root + "/README.md", root + "/CONTRIBUTING.md"}
	for _, pattern := range []string{"/docs/*.md", "/docs/*/*.md"} {
		more, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	makefile, commands, found := read(t, "Makefile"), read(t, "scripts/commands"), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range namedTarget.FindAllStringSubmatch(string(text), -1) {
			target, name := match[1], match[2]
			found++
			switch { // TestEachProofAndMeasurementIsTried checks targets with a name
			case !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(makefile):
				t.Errorf("%s names make %s, but the Makefile has no such target", filepath.Base(page), target)
			case name != "" && !strings.Contains(read(t, "scripts/"+target), "\n"+name+") # "):
				t.Errorf("%s names make %s NAME=%s, which scripts/%s does not know", filepath.Base(page), target, name, target)
			case name == "" && !slices.Contains(untried, target) && !strings.Contains(commands, "\ntry "+target):
				t.Errorf("%s names make %s, which scripts/commands does not run", filepath.Base(page), target)
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d targets were found", found)
	}
}

func TestEachProofAndMeasurementIsTried(t *testing.T) {
	commands := read(t, "scripts/commands")
	for _, target := range []string{"proof", "bench"} {
		names := regexp.MustCompile(`(?m)^([a-z0-9-]+)\) #`).FindAllStringSubmatch(read(t, "scripts/"+target), -1)
		if len(names) < 10 {
			t.Errorf("only %d names of scripts/%s were found", len(names), target)
		}
		for _, name := range names {
			if !strings.Contains(commands, "\n"+target+" "+name[1]+" ") {
				t.Errorf("scripts/commands does not run make %s NAME=%s", target, name[1])
			}
		}
	}
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// If a command adds lines to go.sum or go.work.sum, a fresh clone becomes dirty, and
// measurements are marked as taken from a dirty tree.
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
