package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestWhatACancellationStandsBeside(t *testing.T) {
	stopped := fmt.Errorf("reading: %w", context.Canceled)
	lost := errors.New("the disk is full")
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"alone":                {stopped, "semel: interrupted\n"},
		"beside another error": {failed(errors.Join(stopped, lost)), "semel: the disk is full\nsemel: interrupted\n"},
		"deep inside":          {errors.Join(fmt.Errorf("both: %w", errors.Join(lost, stopped)), stopped), "semel: the disk is full\nsemel: interrupted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := report(&out, c.err); code != exitInterrupted || out.String() != c.says {
				t.Errorf("exit code %d: %s", code, &out)
			}
		})
	}
}

func TestAHaltIsNoInterruption(t *testing.T) {
	var out bytes.Buffer
	halted := failed(fmt.Errorf("consumer billing halted by message \"7\": %w: %w", semel.ErrHalted, context.Canceled))
	if code := report(&out, halted); code != exitFailed || !strings.Contains(out.String(), `message "7"`) {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

// A server that takes connections and never answers.
func silent(t *testing.T, connected func()) string {
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
`, "ADDRESS", silent(t, stop))
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, err bytes.Buffer
	code := Main(ctx, []string{"run", "--config", policy}, Streams{In: strings.NewReader(""), Out: &out, Err: &err, Env: os.LookupEnv})
	if code != exitDone || !strings.Contains(err.String(), "stopped before anything was fetched") {
		t.Errorf("exit code %d: %s%s", code, &out, &err)
	}
}
