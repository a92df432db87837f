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

// If a program looks up a method by a name or index that is known only at run time, the linker keeps every exported
// method of every type. With pgxstore, keeping all methods adds over 2 MB to a user's program. If the name is a
// literal, the linker keeps only the methods with the name.
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
			t.Errorf("%s:%d: %s can look up any method, so the linker keeps all of them: use MethodByName with a literal", f.Path, f.Line(c), s.Sel.Name)
			return true
		})
	}
}

func TestTheLibrariesHaveNoTemplates(t *testing.T) {
	for _, f := range files(t) {
		library := !f.Test() && !strings.HasPrefix(f.Path, "cmd/") && !strings.HasPrefix(f.Path, "itest/")
		for _, path := range []string{"text/template", "html/template"} {
			if library && imports(f, path) {
				t.Errorf("%s imports %s, which can look up any method, so the linker keeps all methods of a user's program", f.Path, path)
			}
		}
	}
}

func imports(f *File, path string) bool {
	return slices.ContainsFunc(f.Tree.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(path) })
}

// The linker reports which functions of a user's program and its dependencies make the linker keep all methods.
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
		t.Fatal("the linker's report is empty")
	}
	for line := range strings.Lines(string(graph)) {
		if strings.Contains(line, "<ReflectMethod>") {
			t.Errorf("can look up any method: %s", line)
		}
	}
}
