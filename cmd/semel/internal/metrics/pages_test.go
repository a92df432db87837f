package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/legible"
)

// Rules are deploy/alerts.yaml.
func Rules() string {
	var b strings.Builder
	b.WriteString("# Written by go test ./cmd/semel/internal/metrics -update, from alerts.go. Runbooks: docs/alerts.md.\ngroups:\n")
	writeGroup(&b, "semel", alerts())
	return b.String()
}

// Runbooks are docs/alerts.md.
func Runbooks() string {
	var b strings.Builder
	b.WriteString("# Alerts\n\n<!-- Written by go test ./cmd/semel/internal/metrics -update, from alerts.go. -->\n\n[deploy/alerts.yaml](../deploy/alerts.yaml) has these rules for Prometheus, over the [metrics](metrics.md) of `semel run`. Thresholds and durations are a beginning: yours depend on what your consumers do. Rules are loaded by `rule_files`, and a run is scraped at the address of its key [`listen`](policy.md):\n\n```yaml\nscrape_configs:\n  - job_name: semel\n    static_configs: [{targets: [\"127.0.0.1:9464\"]}]\nrule_files: [alerts.yaml]\n```\n\nThe commands below want `--config semel.yaml` beside what stands there, where the policy is not in the folder; capitals stand for what is yours. `make proof NAME=alerts` produces the fault of each and has a Prometheus find it.\n\n[deploy/dashboard.json](../deploy/dashboard.json) is a dashboard for Grafana over the same metrics: what takes effect, what waits and for how long, what is set aside, what batches take, and how old the stores' figures are.\n\nWhat a consumer says under `alerts` in the [policy](policy.md) takes the place of a rule's threshold for that consumer: `semel alerts --config semel.yaml >alerts.yaml` prints all rules with it.\n\n```yaml\n    alerts: {pending_age: 60s, parked: 1, duplicate_spike: true}\n```\n")
	for _, a := range alerts() {
		hold := "at once"
		if a.hold > 0 {
			hold = "for " + legible.Span(a.hold)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s (%s, %s).\n\n```promql\n%s\n```\n\n* What it means: %s\n* What to look at: %s\n* What mends it: %s\n", a.name, strings.ToUpper(a.summary[:1])+a.summary[1:], a.severity, hold, a.expr, a.means, a.look, a.mend)
	}
	return b.String()
}

// Reference is docs/metrics.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, p := range table() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n", p.title, p.says)
		for _, m := range p.metrics {
			_, labels := entry(m.name)
			named := "–"
			if len(labels) > 0 {
				named = "`" + strings.Join(labels, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, named, m.help)
		}
	}
	b.WriteString("\n## Labels\n\n| label | values |\n| --- | --- |\n")
	all := slices.SortedFunc(slices.Values(labelMeanings), func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	for _, l := range all {
		fmt.Fprintf(&b, "| `%s` | %s |\n", l[0], l[1])
	}
	return b.String()
}

const introduction = `# Metrics

<!-- Written by go test ./cmd/semel/internal/metrics -update, from the table in table.go. -->

` + "`listen: 127.0.0.1:9464`" + ` in the [policy](policy.md) has ` + "`semel run`" + ` serve ` + "`/metrics`" + ` in Prometheus' format; [operations](operations.md#health-and-metrics) says more. Beside the metrics below are those of Prometheus' Go client, of the Go runtime (` + "`go_…`" + `) and of the process (` + "`process_…`" + `).

![What a run told of itself: effects, duplicates, what waits and what is set aside](pictures/figures.svg)

That is a run with a database in SQLite to which 100 messages a second came. A copy is a success and no effect; what cannot be applied is set aside; what came while somebody kept the database to himself took effect when he let it go, each once. ` + "`BenchmarkFiguresOfARun`" + ` in cmd/semel records such a run.
`
