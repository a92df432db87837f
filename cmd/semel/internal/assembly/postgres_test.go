package assembly

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestErrorsOfUnreachableServersBeginWithTheRemedy(t *testing.T) {
	address := closedPort(t)
	p, err := policy.Bare("postgres://shop@" + address + "/shop")
	if err != nil {
		t.Fatal(err)
	}
	all := func(*policy.Store) bool { return true }
	a, err := Open(p, Options{Logger: slog.New(slog.DiscardHandler)}, all, all)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	place := "store " + a.Stores[0].Name() + ": database shop at " + address + ": "
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a port where nobody listens": {a.Check(t.Context()), "no server listens there; start the server, or correct host and port in the url: dial tcp " + address},
		"a name that is not known":    {a.Stores[0].Failed(fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "db"})), "the url has an unknown host; correct it: lookup db"},
		"a server that stands still":  {a.Stores[0].Failed(fmt.Errorf("x: %w", context.DeadlineExceeded)), "the server did not answer in time; check whether it hangs"},
	} {
		if c.err == nil || !strings.HasPrefix(c.err.Error(), place+c.want) {
			t.Errorf("%s: %v", name, c.err)
		}
		if c.err != nil && len(c.err.Error()) > 240 {
			t.Errorf("%s: the error is longer than three lines of a terminal: %v", name, c.err)
		}
	}
}
