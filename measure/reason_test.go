package measure_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/measure"
)

// reasons returns the reasons that are declared in package semel and in internal/reasonname, by name.
func reasons(t *testing.T) map[string]semel.Reason {
	t.Helper()
	all := map[string]semel.Reason{}
	for path, prefix := range map[string]string{"../reason.go": "Reason", "../internal/reasonname/reasonname.go": ""} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			v, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			for i, name := range v.Names {
				if !strings.HasPrefix(name.Name, prefix) || i >= len(v.Values) {
					continue
				}
				if text, is := v.Values[i].(*ast.BasicLit); is {
					value, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					all[name.Name] = semel.Reason(value)
				}
			}
			return true
		})
	}
	if len(all) < 29 {
		t.Fatalf("%d reasons were found: %v", len(all), all)
	}
	return all
}

// A reason that is missing in the list would be counted as "other".
func TestEachReasonIsAClass(t *testing.T) {
	t.Run("trap_86_and_all_that_handlers_name_are_one", func(t *testing.T) {
		for name, r := range reasons(t) {
			class := string(r)
			if r == reasonname.None {
				class = "none"
			}
			if got := measure.ReasonClass(r); got != class || measure.OwnReason(r) != (r != reasonname.None) {
				t.Errorf("%s is told as %q", name, got)
			}
		}
		if got := measure.ReasonClass("account 17"); got != "other" || measure.OwnReason("account 17") {
			t.Errorf("a handler's reason has the class %q", got)
		}
	})
}
