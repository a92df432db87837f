package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

var metricName = regexp.MustCompile(`semel_[a-z_]+`)

// exportedSeries returns the names of all exported series, including the series of histograms.
func exportedSeries() map[string]bool {
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

func TestTheDashboardUsesExistingMetrics(t *testing.T) {
	t.Run("K5_each_panel_has_a_question_and_an_answer", func(t *testing.T) {
		known, titles := exportedSeries(), map[string]bool{}
		for _, r := range dashboard() {
			for _, p := range r.panels {
				if titles[p.title] || p.says == "" || p.unit == "" || len(p.queries) == 0 {
					t.Errorf("the panel %q exists twice, or its description is too short", p.title)
				}
				titles[p.title] = true
				for _, q := range p.queries {
					asked := metricName.FindAllString(q.expr, -1)
					for _, name := range asked {
						if !known[name] {
							t.Errorf("%q queries %s, which does not exist", p.title, name)
						}
					}
					if len(asked) == 0 || strings.Contains(q.expr, "sum by (consumer) (semel_store_") {
						t.Errorf("%q queries nothing, or adds up values that several processes read from one store", p.title)
					}
				}
			}
		}
	})
}

// counterInRule is a pattern for the expressions of alert rules. The pattern matches a counter within increase or
// rate, and an optional condition on one label.
var counterInRule = regexp.MustCompile(`(?:increase|rate)\((semel_[a-z_]+)(?:\{([a-z]+)="([^"]*)"\})?\[`)

// labelValues returns the possible values of each label. The labels consumer and source are not
// included.
func labelValues() map[string][]string {
	all := map[string][]string{byPart: measure.Parts()}
	for _, a := range measure.Asides() {
		all[byReason] = append(all[byReason], a.Reason)
	}
	for _, end := range measure.Ends() {
		all[byEnd] = append(all[byEnd], end.String())
	}
	measure.Figures(semel.Counts{}, func(f measure.Figure) {
		if f.Label != "" {
			all[f.Label] = append(all[f.Label], f.Value)
		}
	})
	return all
}

const setAsideTotal = "semel_unapplied_total"

// asideLines returns the lines that a scrape contains before any message was parked, discarded or
// dead-lettered.
func asideLines() (lines []string) {
	for _, a := range measure.Asides() {
		lines = append(lines, fmt.Sprintf("%s{consumer=\"billing\",how=%q,reason=%q} 0", setAsideTotal, a.How, a.Reason))
	}
	return lines
}

// atZero returns the lines that a scrape contains for a counter with value 0.
func atZero(t *testing.T, name string, values map[string][]string) []string {
	if name == setAsideTotal { // each kind of outcome has only some of the reasons
		return asideLines()
	}
	lines := []string{""}
	_, labels := entry(name)
	for _, label := range slices.Sorted(slices.Values(labels)) {
		all := values[label]
		if len(all) == 0 {
			t.Errorf("the values of label %s of %s are not listed", label, name)
		}
		var longer []string
		for _, line := range lines {
			for _, v := range all {
				longer = append(longer, line+","+label+`="`+v+`"`)
			}
		}
		lines = longer
	}
	for i, line := range lines {
		lines[i] = name + "{" + line[1:] + "} 0"
	}
	return lines
}

func TestCountersOfAlertsStartAtZero(t *testing.T) {
	values := labelValues()
	values[byConsumer], values[bySource] = []string{"billing"}, []string{"kafka"}
	for name, started := range map[string]bool{"K5_before_the_consumers_have_started": false, "K5_right_after_the_start": true} {
		t.Run(name, func(t *testing.T) {
			s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}, Sources: map[string]string{"billing": "kafka"}})
			if started {
				s.Started(map[string]Consumer{"billing": &idleConsumer{}})
			}
			_, text := get(s, PathMetrics)
			lines, asked := strings.Split(text, "\n"), 0
			for _, a := range alerts() {
				for _, g := range counterInRule.FindAllStringSubmatch(a.expr, -1) {
					if asked++; g[2] != "" && !slices.Contains(values[g[2]], g[3]) {
						t.Errorf("%s queries %s=%q, which no metric has", a.name, g[2], g[3])
					}
					for _, line := range atZero(t, g[1], values) {
						if !slices.Contains(lines, line) {
							t.Errorf("%s: the scrape has no line %s", a.name, line)
						}
					}
				}
			}
			told := slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, setAsideTotal+"{") })
			if slices.Sort(told); !slices.Equal(told, slices.Sorted(slices.Values(asideLines()))) {
				t.Errorf("the scrape has endings that never happen:\n%s", strings.Join(told, "\n"))
			}
			if asked < 9 {
				t.Errorf("only %d queries of growth were found", asked)
			}
		})
	}
}

func TestAlerts(t *testing.T) {
	t.Run("K5_rules_and_runbooks_are_of_one_table", func(t *testing.T) {
		for file, want := range map[string]string{"../../../../deploy/alerts.yaml": Rules(), "../../../../docs/operate/alerts.md": Runbooks(), "../../../../deploy/dashboard.json": Dashboard()} {
			if *update {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != want {
				t.Errorf("%s does not match the table (%v): go test ./cmd/semel/internal/metrics -update", file, err)
			}
		}
	})
	t.Run("K5_each_asks_for_metrics_that_there_are", func(t *testing.T) {
		known, seen := exportedSeries(), map[string]bool{}
		for _, a := range alerts() {
			asked := metricName.FindAllString(a.expr, -1)
			for _, name := range asked {
				if !known[name] {
					t.Errorf("%s queries %s, which does not exist", a.name, name)
				}
			}
			if seen[a.name] || len(asked) == 0 || a.means == "" || a.look == "" || a.fix == "" || a.summary == "" {
				t.Errorf("%s exists twice, or its runbook is too short", a.name)
			}
			seen[a.name] = true
			for _, name := range metricName.FindAllString(a.look, -1) {
				if !known[name] {
					t.Errorf("the runbook of %s names %s, which does not exist", a.name, name)
				}
			}
			if strings.Contains(a.expr, "sum") && strings.Contains(a.expr, "sum by ("+sumLabel+") (semel_store_") {
				t.Errorf("%s adds up values that several processes read from one store", a.name)
			}
		}
	})
}
