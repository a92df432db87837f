package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/contract"
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

func TestABareDatabaseKnowsWhomAReaperIsCalledFor(t *testing.T) {
	var out, log bytes.Buffer
	c, p, a := bare(t, &out, &log)
	for _, r := range []contract.Retention{{Consumer: "billing", Keep: time.Hour}, {Consumer: "bodies", Bodies: time.Hour}, {Consumer: "ledger"}} {
		if err := a.Stores[0].Retain(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	names, err := c.reapedIn(t.Context(), p, a.Stores[0])
	if want := []string{"billing", "bodies"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	c.consumer = "other"
	if names, err = c.reapedIn(t.Context(), p, a.Stores[0]); err != nil || !slices.Equal(names, []string{"other"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestAStoreThatDoesNotAnswerIsNotSaidToKeepAll(t *testing.T) {
	var out, log bytes.Buffer
	c, p, a := bare(t, &out, &log)
	if err := c.reap(t.Context(), a, false); err != nil || log.String() != "no consumer has recorded a retention: all is kept for ever\n" {
		t.Errorf("%v: %s", err, &log)
	}
	log.Reset()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.reap(t.Context(), a, false); err == nil || out.Len()+log.Len() > 0 {
		t.Errorf("%v: %s%s", err, &out, &log)
	}
	if names, err := c.reapedIn(t.Context(), p, a.Stores[0]); err == nil {
		t.Errorf("got %q and no error", names)
	}
}
