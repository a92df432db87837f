package semeltest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/semel-go/semel/internal/handlertest"
)

// Process returns the database that the function start of Run must open for Handler.Process: a path, a connection
// string or any other text that names the database. In the test, Process returns the parameter own. In a child process
// that will be killed, Process returns the database of the test, which already has its tables when the child process
// calls start.
func Process(own string) string { return handlertest.Database(own) }

// again returns the command that starts this test binary again, for the subtest t only.
func again(ctx context.Context, t handlertest.T) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	parts := strings.Split(t.Name(), "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return exec.CommandContext(ctx, program, "-test.run="+strings.Join(parts, "/"), "-test.count=1"), nil
}
