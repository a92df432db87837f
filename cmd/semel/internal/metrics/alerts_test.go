package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var named = regexp.MustCompile(`semel_[a-z_]+`)

func TestAlerts(t *testing.T) {
	t.Run("K5_rules_and_runbooks_are_of_one_table", func(t *testing.T) {
		for file, want := range map[string]string{"../../../../deploy/alerts.yaml": Rules(), "../../../../docs/alerts.md": Runbooks()} {
			if *update {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != want {
				t.Errorf("%s is not of the table (%v): go test ./cmd/semel/internal/metrics -update", file, err)
			}
		}
	})
	t.Run("K5_each_asks_for_metrics_that_there_are", func(t *testing.T) {
		known := map[string]bool{}
		for _, p := range table() {
			for _, m := range p.metrics {
				known[m.name] = true
			}
		}
		seen := map[string]bool{}
		for _, a := range alerts() {
			asked := named.FindAllString(a.expr, -1)
			for _, name := range asked {
				if !known[name] {
					t.Errorf("%s asks for %s, and nobody tells it", a.name, name)
				}
			}
			if seen[a.name] || len(asked) == 0 || a.means == "" || a.look == "" || a.mend == "" || a.summary == "" {
				t.Errorf("%s is there twice, or its runbook says too little", a.name)
			}
			seen[a.name] = true
			for _, name := range named.FindAllString(a.look, -1) {
				if !known[name] {
					t.Errorf("the runbook of %s names %s, and nobody tells it", a.name, name)
				}
			}
			if strings.Contains(a.expr, "sum") && strings.Contains(a.expr, "sum by ("+mine+") (semel_store_") {
				t.Errorf("%s adds up what several processes read from one store", a.name)
			}
		}
	})
}
