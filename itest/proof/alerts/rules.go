//go:build unix

package alerts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// root returns the root folder of the workspace.
func root(ctx context.Context) (string, error) {
	said, err := exec.CommandContext(ctx, "go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOWORK: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(said))), nil
}

// shippedRules returns the text of deploy/alerts.yaml and the names of its alerts, in the order of the file.
func shippedRules(ctx context.Context) (text string, names []string, err error) {
	root, err := root(ctx)
	if err != nil {
		return "", nil, err
	}
	read, err := os.ReadFile(filepath.Join(root, "deploy", "alerts.yaml"))
	if err != nil {
		return "", nil, err
	}
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(string(read), -1) {
		names = append(names, m[1])
	}
	return string(read), names, nil
}

// The durations in a rule: ranges, `for`, and maximum ages.
var (
	window = regexp.MustCompile(`\[(\d+)m\]`)
	holds  = regexp.MustCompile(`for: (\d+)m`)
	age    = regexp.MustCompile(`(_seconds(?:\{[^}]*\})?\)) > (\d+)`)
	labels = regexp.MustCompile(`labels: \{`)
	blind  = regexp.MustCompile(`(alert: SemelStoreNotSampled\n.*\n +for: )\d+s`)
)

// scaleDurations returns the rules with all durations divided by scale. Each rule gets a label that marks the rule
// as scaled. Numbers of messages and rates stay the same.
func scaleDurations(rules string, scale int) string {
	rules = window.ReplaceAllStringFunc(rules, func(s string) string { return fmt.Sprintf("[%ds]", toSeconds(window, s, 1, 60)/scale) })
	rules = holds.ReplaceAllStringFunc(rules, func(s string) string { return fmt.Sprintf("for: %ds", toSeconds(holds, s, 1, 60)/scale) })
	rules = age.ReplaceAllStringFunc(rules, func(s string) string {
		return fmt.Sprintf("%s > %d", age.FindStringSubmatch(s)[1], toSeconds(age, s, 2, 1)/scale)
	})
	// The durations of rules about samples are at least 31 s, because the sampler runs every 15 s at any scale and may
	// miss one sample on a busy machine.
	rules = blind.ReplaceAllString(rules, "${1}31s")
	rules = labels.ReplaceAllString(rules, "labels: {time: scaled, ")
	return strings.Replace(rules, "name: semel", "name: scaled", 1)
}

// toSeconds returns the number in a group of the expression's match, converted to seconds.
func toSeconds(of *regexp.Regexp, found string, group, unit int) int {
	n, err := strconv.Atoi(of.FindStringSubmatch(found)[group])
	if err != nil {
		return 0
	}
	return n * unit
}

// configuration returns the configuration of Prometheus, which scrapes the given addresses and evaluates rules once a
// second.
func configuration(addresses ...string) string {
	return fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [shipped.yaml, scaled.yaml]
scrape_configs:
  - job_name: semel
    static_configs: [{targets: ["%s"]}]
`, strings.Join(addresses, `", "`))
}
