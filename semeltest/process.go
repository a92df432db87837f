package semeltest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/semel-go/semel/internal/handlertest"
)

// Process returns the database that start must open for Handler.Process: a path, a connection string or
// any other text that names it. In the test Process returns own. In a child process that will be killed
// it returns the database of the test. There start runs on a database that has its tables already.
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
