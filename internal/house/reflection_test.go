package house

import (
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Where a program looks for a method by a name or a number that only its run
// tells, the linker keeps every exported method of every type: over 2 MB of a
// user's program through pgxstore. A name that is a literal keeps its methods only.
func TestMethodsAreNotLookedForByAVariable(t *testing.T) {
	for _, f := range files(t) {
		if f.Test() || !imports(f, "reflect") {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Method", "Methods", "MethodByName"}, s.Sel.Name) {
				return true
			}
			if len(c.Args) == 1 && s.Sel.Name == "MethodByName" {
				if _, literal := c.Args[0].(*ast.BasicLit); literal {
					return true
				}
			}
			t.Errorf("%s:%d: %s finds any method, so the linker keeps all: give MethodByName a literal", f.Path, f.Line(c), s.Sel.Name)
			return true
		})
	}
}

func TestTheLibrariesHaveNoTemplates(t *testing.T) {
	for _, f := range files(t) {
		library := !f.Test() && !strings.HasPrefix(f.Path, "cmd/") && !strings.HasPrefix(f.Path, "itest/")
		for _, path := range []string{"text/template", "html/template"} {
			if library && imports(f, path) {
				t.Errorf("%s imports %s, which finds any method, so the linker keeps all of a user's program", f.Path, path)
			}
		}
	}
}

func imports(f *File, path string) bool {
	return slices.ContainsFunc(f.Tree.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(path) })
}

// What the linker keeps for reflection in a user's program, dependencies and all.
func TestTheLinkerDropsWhatAUsersProgramDoesNotCall(t *testing.T) {
	user, err := filepath.Abs("testdata/user/main.go")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "user"), "-ldflags=-dumpdep", user)
	build.Dir = filepath.Join(root, "pgxstore")
	graph, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, graph)
	}
	if !strings.Contains(string(graph), "main.run -> github.com/semel-go/semel/pgxstore.New") {
		t.Fatal("the linker told nothing of what it keeps")
	}
	for line := range strings.Lines(string(graph)) {
		if strings.Contains(line, "<ReflectMethod>") {
			t.Errorf("finds any method: %s", line)
		}
	}
}
