package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
)

// reasonsWithoutRows lists the reasons that rows never have.
var reasonsWithoutRows = []semel.Reason{reasonname.None, reasonname.Busy, reasonname.Newer, semel.ReasonPaused}

func TestEveryReasonOfARowIsCompleted(t *testing.T) {
	want := []string{string(admin.ReasonReopened)}
	for _, path := range []string{"reason.go", "internal/reasonname/reasonname.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../../../../"+path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		file.Imports, file.Decls = nil, slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
			list, is := d.(*ast.GenDecl)
			return !is || list.Tok != token.CONST
		})
		ast.Inspect(file, func(n ast.Node) bool {
			if word, ok := n.(*ast.BasicLit); ok && word.Kind == token.STRING {
				text, err := strconv.Unquote(word.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(reasonsWithoutRows, semel.Reason(text)) {
					want = append(want, text)
				}
			}
			return true
		})
	}
	got := reasons()
	slices.Sort(got)
	slices.Sort(want)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("completed: %q\ndeclared: %q", got, want)
	}
}
