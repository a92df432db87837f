package house

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pointer finds a page of the documentation, with or without a heading, in a text of the program.
var pointer = regexp.MustCompile(`docs/[a-z/-]+(?:\.md)?(?:#[a-z0-9-]+)?`)

// A reader of an error follows the page that the error names.
func TestThePagesThatProgramsNameExist(t *testing.T) {
	pages, found := markdown(t), 0
	for _, f := range files(t) {
		if f.Test() {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			text, is := n.(*ast.BasicLit)
			if !is || text.Kind != token.STRING {
				return true
			}
			for _, at := range pointer.FindAllString(text.Value, -1) {
				path, anchor, _ := strings.Cut(at, "#")
				if _, err := os.Stat(root + "/" + path); err != nil && !strings.HasPrefix(path, "docs/pictures/") {
					t.Errorf("%s:%d names %s: %v", f.Path, f.Line(n), at, err)
				} else if anchor != "" && !slices.Contains(headings(pages[path]), anchor) {
					t.Errorf("%s:%d names %s, and the page has no such heading", f.Path, f.Line(n), at)
				}
				found++
			}
			return true
		})
	}
	if found < 10 {
		t.Errorf("only %d pages were found", found)
	}
}
