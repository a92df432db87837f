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

// handedBack are the reasons that no row has.
var handedBack = []semel.Reason{reasonname.None, reasonname.Busy, reasonname.Newer, semel.ReasonPaused}

func TestEveryReasonOfARowIsCompleted(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../../reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{string(admin.ReasonReopened)}
	ast.Inspect(file, func(n ast.Node) bool {
		if word, ok := n.(*ast.BasicLit); ok && word.Kind == token.STRING {
			text, err := strconv.Unquote(word.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(handedBack, semel.Reason(text)) {
				want = append(want, text)
			}
		}
		return true
	})
	got := reasons()
	slices.Sort(got)
	slices.Sort(want)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("completed: %q\nreason.go: %q", got, want)
	}
}
