package metrics

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var metricName = regexp.MustCompile(`semel_[a-z_]+`)

// told are the names of the metrics that there are.
func told() map[string]bool {
	known := map[string]bool{}
	for _, p := range table() {
		for _, m := range p.metrics {
			if known[m.name] = true; m.kind == histogram {
				known[m.name+"_bucket"], known[m.name+"_sum"], known[m.name+"_count"] = true, true, true
			}
		}
	}
	return known
}

func TestTheDashboardAsksForMetricsThatThereAre(t *testing.T) {
	t.Run("K5_each_panel_has_a_question_and_an_answer", func(t *testing.T) {
		known, titles := told(), map[string]bool{}
		for _, r := range dashboard() {
			for _, p := range r.panels {
				if titles[p.title] || p.says == "" || p.unit == "" || len(p.queries) == 0 {
					t.Errorf("the panel %q is there twice, or says too little", p.title)
				}
				titles[p.title] = true
				for _, q := range p.queries {
					asked := metricName.FindAllString(q.expr, -1)
					for _, name := range asked {
						if !known[name] {
							t.Errorf("%q asks for %s, and nobody tells it", p.title, name)
						}
					}
					if len(asked) == 0 || strings.Contains(q.expr, "sum by (consumer) (semel_store_") {
						t.Errorf("%q asks for nothing, or adds up what several processes read from one store", p.title)
					}
				}
			}
		}
	})
}

func TestAlerts(t *testing.T) {
	t.Run("K5_rules_and_runbooks_are_of_one_table", func(t *testing.T) {
		for file, want := range map[string]string{"../../../../deploy/alerts.yaml": Rules(), "../../../../docs/alerts.md": Runbooks(), "../../../../deploy/dashboard.json": Dashboard()} {
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
		known, seen := told(), map[string]bool{}
		for _, a := range alerts() {
			asked := metricName.FindAllString(a.expr, -1)
			for _, name := range asked {
				if !known[name] {
					t.Errorf("%s asks for %s, and nobody tells it", a.name, name)
				}
			}
			if seen[a.name] || len(asked) == 0 || a.means == "" || a.look == "" || a.mend == "" || a.summary == "" {
				t.Errorf("%s is there twice, or its runbook says too little", a.name)
			}
			seen[a.name] = true
			for _, name := range metricName.FindAllString(a.look, -1) {
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
