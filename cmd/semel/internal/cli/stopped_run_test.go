package cli

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

// startSilentServer starts a server that accepts connections and never responds, and returns the server's
// address. The server calls the function connected for each connection.
func startSilentServer(t *testing.T, connected func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			connected()
		}
	}()
	return listener.Addr().String()
}

func TestARunThatIsStoppedBeforeItFetches(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	policy := filepath.Join(t.TempDir(), "semel.yaml")
	text := strings.ReplaceAll(`version: 1
stores:
  shop: {postgres: {url: "postgres://u@ADDRESS/d?sslmode=disable"}}
sources:
  payments: {file: {path: payments.jsonl, format: cloudevents}}
consumers:
  billing:
    from: payments
    store: shop
    identity: {id: id, source: source}
    handler: {sql: {statements: ["insert into t values (1)"]}}
    retention: forever
`, "ADDRESS", startSilentServer(t, stop))
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, err bytes.Buffer
	code := Main(ctx, []string{"run", "--config", policy}, command.Streams{In: strings.NewReader(""), Out: &out, Err: &err, Env: os.LookupEnv})
	if code != command.ExitDone || !strings.Contains(err.String(), "stopped before anything was fetched") {
		t.Errorf("exit code %d: %s%s", code, &out, &err)
	}
}
