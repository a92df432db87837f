package matrix

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

var update = flag.Bool("update", false, "write docs/internals/crash-matrix.md")

func TestThePageShowsTheMatrix(t *testing.T) {
	const path = "../../docs/internals/crash-matrix.md"
	if *update {
		must.OK(t, os.WriteFile(path, []byte(page()), 0o644))
	}
	if text := must.Get(os.ReadFile(path))(t); string(text) != page() {
		t.Errorf("%s differs; write it with go test ./itest/matrix -run Page -update", path)
	}
}

func TestTheMatrixIsWhole(t *testing.T) {
	all, names := cells(), map[string]bool{}
	for _, c := range all {
		names[c.String()] = true
	}
	if len(names) != len(all) {
		t.Errorf("%d names for %d cells", len(names), len(all))
	}
	for r := possible; r < reasons; r++ {
		if !slices.ContainsFunc(all, func(c cell) bool { return c.impossible() == r }) {
			t.Errorf("no cell has the reason %q", r)
		}
	}
}
