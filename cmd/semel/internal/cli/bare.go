package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// bare is a database that is named without a policy, with Semel's tables.
func bare(t *testing.T, out, log *bytes.Buffer) (*common, *policy.Policy, *assembly.Assembly) {
	t.Helper()
	c := &common{Streams: Streams{Out: out, Err: log, Env: os.LookupEnv}}
	c.logs.level = "info"
	p, name, err := c.loadFor("sqlite:" + filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.open(p, name, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close(a) })
	if _, err := a.Stores[0].Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, p, a
}
