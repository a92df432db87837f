//go:build unix

package paired

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof/file"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// binary returns a Measure that runs a script instead of semel. The input has ten deliveries of three messages.
func binary(t *testing.T, script string) Measure {
	t.Helper()
	run := FileRun{Folder: t.TempDir(), Cores: []int{1, 2}, Input: file.Input{Webhooks: webhooks.MadeUp(5, 100), Deliveries: 10, IDs: 3, Seed: 1}}
	if size, err := run.Prepare(); err != nil || size < 1000 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	path := filepath.Join(t.TempDir(), "semel")
	must.OK(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	return run.Measure(path)
}

func TestARunOverAFileIsMeasuredWithEachNumberOfCores(t *testing.T) {
	s, err := binary(t, `test ! -e counts.db && touch counts.db && test $(wc -l <webhooks.jsonl) = 10 &&
		echo '{"consumers":{"counter":{"applied":3,"duplicates":7}}}'; test -n "$GOMAXPROCS"`)(t.Context())
	must.OK(t, err)
	for _, row := range []string{"GOMAXPROCS=1", "GOMAXPROCS=2"} {
		if r, is := s[row]; !is || r.Main <= 0 || r.Beside[0] <= 0 || r.Beside[2] <= 0 {
			t.Errorf("%s: %+v of %v", row, r, s)
		}
	}
}

func TestARunThatDidNotApplyEachMessageOnceIsAnError(t *testing.T) {
	for script, want := range map[string]string{
		`echo '{"consumers":{"counter":{"applied":2,"duplicates":8}}}'`: "not each of 3 messages was applied once out of 10 deliveries",
		`echo '{"consumers":{"another":{"applied":3,"duplicates":7}}}'`: "not each of 3 messages",
		`echo done`:                          "it printed no summary",
		`echo the store is away >&2; exit 1`: "the store is away",
	} {
		if _, err := binary(t, script)(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "GOMAXPROCS=1") {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestCoresAreComparedRoundByRound(t *testing.T) {
	sample := func(one, two float64) Sample {
		return Sample{"GOMAXPROCS=1": {Main: one}, "GOMAXPROCS=2": {Main: two}}
	}
	c := Comparison{Rounds: []Round{{sample(100, 100), sample(100, 180), sample(50, 50)}, {sample(10, 10), sample(10, 18), sample(10, 10)}}}
	if base, present := c.Cores(1, 2); base.Median != 1 || present.Median != 1.8 {
		t.Errorf("base %+v, present %+v", base, present)
	}
}
