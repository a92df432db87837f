package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/legible"
)

// Rules returns the text of deploy/alerts.yaml.
func Rules() string {
	var b strings.Builder
	b.WriteString("# Written by go test ./cmd/semel/internal/metrics -update, from alerts.go. Runbooks: docs/operate/alerts.md.\ngroups:\n")
	writeGroup(&b, "semel", alerts())
	return b.String()
}

// Runbooks returns the text of docs/operate/alerts.md.
func Runbooks() string {
	var b strings.Builder
	b.WriteString("# Alerts\n\n<!-- Written by go test ./cmd/semel/internal/metrics -update, from alerts.go. -->\n\n[deploy/alerts.yaml](../../deploy/alerts.yaml) has these rules for Prometheus, based on the [metrics](../reference/metrics.md) of `semel run`. Adjust thresholds and durations to your consumers. Prometheus loads the rules with `rule_files`, and scrapes the address of the policy key [`listen`](../reference/policy/README.md):\n\n```yaml\nscrape_configs:\n  - job_name: semel\n    static_configs: [{targets: [\"127.0.0.1:9464\"]}]\nrule_files: [alerts.yaml]\n```\n\nAdd `--config FILE` to the commands below if the policy is not `semel.yaml` in the current folder, and replace words in capitals. The first line of each alert ends with its severity and how long its condition must hold: `(ticket, at once)` means a ticket without a waiting time, and `page` means that a person must act now. `make proof NAME=alerts` causes the fault of each alert and checks that Prometheus fires it.\n\n[deploy/dashboard.json](../../deploy/dashboard.json) is a Grafana dashboard with the same metrics.\n\nThe key `alerts` of a consumer in the [policy](../reference/policy/README.md) replaces thresholds for that consumer. `semel generate alerts --config semel.yaml >alerts.yaml` prints all rules with these thresholds.\n\n```yaml\n    alerts: {pending_age: 60s, parked: 1, duplicate_spike: true}\n```\n")
	for _, a := range alerts() {
		hold := "at once"
		if a.hold > 0 {
			hold = "for " + legible.Span(a.hold)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s (%s, %s).\n\n* Meaning: %s\n* Check: %s\n* Fix: %s\n", a.name, strings.ToUpper(a.summary[:1])+a.summary[1:], a.severity, hold, a.means, a.look, a.fix)
	}
	return b.String()
}

// Reference returns the text of docs/reference/metrics.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, p := range table() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n", p.title, p.description)
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

` + "`listen: 127.0.0.1:9464`" + ` in the [policy](policy/README.md) makes ` + "`semel run`" + ` serve ` + "`/metrics`" + ` for Prometheus ([operations](../operate/health.md)). In addition to the metrics below, it serves those of Prometheus' Go client, of the Go runtime (` + "`go_…`" + `) and of the process (` + "`process_…`" + `).

![Figures of a run: effects, duplicates, waiting and parked messages](../pictures/figures.svg)

Measured with SQLite at 100 messages per second, while another process locked the database for a while.
`
