package metrics

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/metrics.md")

const reference = "../../../../docs/reference/metrics.md"

func TestTheReferenceMatchesTheTable(t *testing.T) {
	t.Run("K4_names_and_meanings_stand_in_docs_metrics_md", func(t *testing.T) {
		if *update {
			if err := os.WriteFile(reference, []byte(Reference()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(reference)
		if err != nil || string(text) != Reference() {
			t.Errorf("docs/reference/metrics.md does not match the table (%v): go test ./cmd/semel/internal/metrics -update", err)
		}
	})
	t.Run("trap_86_every_label_has_values_that_are_few_and_known", func(t *testing.T) {
		var known []string
		for _, l := range labelMeanings {
			known = append(known, l[0])
		}
		used := map[string]bool{}
		for _, p := range table() {
			for _, m := range p.metrics {
				_, labels := entry(m.name)
				for _, l := range labels {
					used[l] = true
					if !slices.Contains(known, l) {
						t.Errorf("the label %s of %s has no description", l, m.name)
					}
				}
				for _, id := range []string{"id", "key", "topic", "lane", "partition", "error", "message"} {
					if slices.Contains(labels, id) {
						t.Errorf("%s has the label %s, whose values are unbounded", m.name, id)
					}
				}
			}
		}
		for _, l := range known {
			if !used[l] {
				t.Errorf("no metric has the label %s", l)
			}
		}
	})
	t.Run("K4_names_are_those_of_Prometheus", func(t *testing.T) {
		seen := map[string]bool{}
		for _, p := range table() {
			for _, m := range p.metrics {
				if seen[m.name] || m.help == "" || !strings.HasPrefix(m.name, "semel_") || strings.HasSuffix(m.name, "_total") != (m.kind == counter) {
					t.Errorf("%s, a %s, exists twice, has no help, or has a name of another kind", m.name, m.kind)
				}
				seen[m.name] = true
			}
		}
	})
}
