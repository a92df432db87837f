package httpkey

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/house/pages"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// TestTheStartOfTheDocumentProtectsAnEndpoint runs the program of docs/guides/http.md.
func TestTheStartOfTheDocumentProtectsAnEndpoint(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "start")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../../examples/orders-api").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	listen, err := proof.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(ctx, program), url: "http://" + listen + "/orders?item=tea", log: &bytes.Buffer{}}
	p.Env, p.Stderr = append(os.Environ(), "DATABASE_URL="+services.Postgres(t), "LISTEN="+listen), p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	first, second := p.insist(ctx, t, "8e03978e"), p.insist(ctx, t, "8e03978e")
	if first.Status != 201 || first.Replayed || first.Body != "{\"order\":1}\n" || !second.Replayed || second.Body != first.Body {
		t.Errorf("the first is %+v, and the second %+v", first, second)
	}
	if other := p.insist(ctx, t, "another"); other.Body != "{\"order\":2}\n" {
		t.Errorf("another is %+v", other)
	}
}

func TestTheDocumentShowsTheseLines(t *testing.T) {
	code := pages.Read(t, "../../../examples/orders-api/main.go", "../../../examples/http-orders/main.go", "../../../httpkey/example_steps_test.go")
	// Some lines on the page are from function bodies, but without their indentation.
	pages.Shows(t, "../../../docs/guides/http.md", 3, code+strings.ReplaceAll(code, "\n\t", "\n"))
}
