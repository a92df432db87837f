package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// design returns the page that describes the structure of the code.
func design(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/internals/design.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the text below a heading, up to the next heading.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/internals/design.md has no heading %q", heading)
	}
	body, _, _ := strings.Cut(rest, "\n#")
	return body
}

var quoted = regexp.MustCompile("`([^`]+)`")

// rooms returns the folders in the first column of the table of rooms.
func rooms(t *testing.T) map[string]bool {
	t.Helper()
	named := map[string]bool{}
	for _, line := range strings.Split(section(t, design(t), "## Rooms"), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				named[m[1]] = true
			}
		}
	}
	if !named["semel"] {
		t.Fatal("the table of rooms does not begin with the root package")
	}
	delete(named, "semel")
	named["."] = true
	return named
}

func TestEveryPackageHasARoomInTheDesign(t *testing.T) {
	named := rooms(t)
	inARoom := func(folder string) bool {
		for ; folder != "."; folder = filepath.Dir(folder) {
			if named[folder] {
				return true
			}
		}
		return false
	}
	told := map[string]bool{".": true}
	for _, f := range files(t) {
		if folder := filepath.Dir(f.Path); !told[folder] && !inARoom(folder) {
			t.Errorf("%s is missing in the table of rooms of docs/internals/design.md; add what it contains and what it may import", folder)
			told[folder] = true
		}
	}
	for room := range named {
		if info, err := os.Stat(filepath.Join(root, room)); err != nil || !info.IsDir() {
			t.Errorf("the table of rooms of docs/internals/design.md lists %s, which is not a folder", room)
		}
	}
}
