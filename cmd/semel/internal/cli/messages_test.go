package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
)

func TestWhatTheLibrarySaysInTheWordsOfAPolicy(t *testing.T) {
	for line, want := range map[string]string{
		`consumer billing: semel: consumer "billing" cannot start: Retention.Keep is 720h0m0s, and a copy can come 1080h0m0s late (x); keep markers for longer than that`:      `consumer "billing" cannot start: its retention is 30d, and a copy can come 45d late (x); keep markers for longer than that`,
		`a copy can come 24h1m5s late (x), and consumer "billing" keeps markers for 1h0m0s only; nothing is removed until its retention is longer`:                             `a copy can come 24h1m5s late (x), and consumer "billing" keeps markers for 1h only; nothing is removed until its retention is longer`,
		`consumer "billing" cannot start: Retention.Keep is 720h0m0s, and the source's broker can deliver a record again without an end (x); keep markers for ever, or let it`: `consumer "billing" cannot start: its retention is 30d, and the source's broker can deliver a record again without an end (x); keep markers for ever, or let it`,
		"a copy can come ... late": "a copy can come ... late",
	} {
		if got := message(line); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// handedBack are the reasons that no row has.
var handedBack = []semel.Reason{semel.ReasonNone, semel.ReasonBusy, semel.ReasonNewer, semel.ReasonPaused}

func TestEveryReasonOfARowIsCompleted(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../reason.go", nil, 0)
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
