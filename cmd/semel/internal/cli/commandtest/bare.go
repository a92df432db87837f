// Package commandtest has helpers for tests of commands.
package commandtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// Bare creates a SQLite database with Semel's tables, and opens the database as a command does if no policy
// is given.
func Bare(t *testing.T, out, log *bytes.Buffer) (*command.CLI, *policy.Policy, *assembly.Assembly) {
	t.Helper()
	c := &command.CLI{Streams: command.Streams{Out: out, Err: log, Env: os.LookupEnv}}
	c.Logs.Level = "info"
	p, name, err := c.LoadFor("sqlite:" + filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Open(p, name, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(a) })
	if _, err := a.Stores[0].Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, p, a
}
