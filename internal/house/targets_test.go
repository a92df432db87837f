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

// namedTarget finds the targets of make that a page shows, and the names of proofs and measurements:
// in inline code, and at the beginning of a line of a block.
var namedTarget = regexp.MustCompile("(?m)(?:`|^ *)make ([a-z][a-z0-9-]*)(?: NAME=([a-z0-9-]+))?(?: [^`\n]*?)?(?:`| *#| *$)")

// untried are the targets that scripts/commands leaves out. Without a name, proof and bench list
// what there is.
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
			switch { // TestEachProofAndMeasurementIsTried sees to those with a name
			case !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(makefile):
				t.Errorf("%s names make %s, and the Makefile has no such target", filepath.Base(page), target)
			case name != "" && !strings.Contains(read(t, "scripts/"+target), "\n"+name+") # "):
				t.Errorf("%s names make %s NAME=%s, which scripts/%s does not know", filepath.Base(page), target, name, target)
			case name == "" && !slices.Contains(untried, target) && !strings.Contains(commands, "\ntry "+target):
				t.Errorf("%s names make %s, which scripts/commands does not try", filepath.Base(page), target)
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
				t.Errorf("scripts/commands does not try make %s NAME=%s", target, name[1])
			}
		}
	}
}

// read is the text of a file of the tree.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
