// Package alerts tests the shipped alert rules with promtool, the test tool of Prometheus.
package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const rules = "../../../deploy/alerts.yaml"

// faulty contains, for each alert, metric values per minute for four hours. With the values of faulty, the alert must
// fire at least once, and must no longer fire at the end. Some values belong to a second process with the same store.
var faulty = map[string][]string{
	"SemelDoubledEffectCaught": {`semel_backstops_total{consumer="billing"} 0x30 1x210`},
	"SemelConflict":            {`semel_conflicts_total{consumer="billing"} 0x30 1x210`},
	"SemelDuplicateSpike":      {`semel_duplicates_total{consumer="billing"} 0+90x60 5400x180`, `semel_deliveries_total{consumer="billing",source="kafka"} 0+100x240`},
	"SemelUnknownType":         {`semel_unapplied_total{consumer="billing",how="parked",reason="unknown type"} 0x30 1x210`},
	"SemelResidualRisk":        {`semel_without_key_total{consumer="billing"} 0x30 1x210`, `semel_intents_not_sent_again_total{consumer="billing"} 0x240`},
	"SemelWebhooksRefused":     {`semel_webhook_requests_total{consumer="billing",fate="forged"} 0x30 0+1x30 30x180`},
	"SemelParked":              {`semel_store_rows{store="shop",consumer="billing",state="PARKED"} 0x30 2x30 0x180`, `semel_store_suppressed_effects{store="shop",consumer="billing"} 0x30 1x210`},
	"SemelPendingAge":          {`semel_store_oldest_seconds{store="shop",consumer="billing",state="RECEIVED"} 0+60x60 0x180`},
	"SemelStaleClaims":         {`semel_claims_total{consumer="billing",outcome="lost"} 0x30 1x210`},
	"SemelBacklogBehindLowLag": {`semel_broker_lag_messages{consumer="billing"} 3x240`, `semel_store_rows{store="shop",consumer="billing",state="RECEIVED"} 0+100x90 0x150`},
	"SemelGap":                 {`semel_store_gap_oldest_seconds{store="shop",consumer="billing"} 0+60x60 0x180`},
	"SemelLag":                 {`semel_broker_lag_messages{consumer="billing"} 0x30 20000x60 0x150`},
	"SemelUnsettled":           {`semel_unsettled_oldest_seconds{consumer="billing"} 0+60x60 0x180`},
	"SemelNotReady":            {`semel_ready{consumer="billing"} 1x30 0x30 1x180`},
	"SemelBreakerOpen":         {`semel_not_ready_total{consumer="billing",part="breaker"} 0x30 0+1x30 30x180`, `semel_not_ready_total{consumer="billing",part="store"} 0x240`},
	"SemelClockSetBack":        {`semel_not_ready_total{consumer="billing",part="clock"} 0x30 1x210`, `semel_not_ready_total{consumer="billing",part="store"} 0x240`},
	"SemelNotAlive":            {`semel_alive{consumer="billing"} 1x30 0x30 1x180`},
	"SemelStoreNotSampled":     {`semel_store_sample_stale{store="shop"} 0x30 1x30 0x180`},
	"SemelReaperBehind":        {`semel_store_reaper_lag_seconds{store="shop",consumer="billing"} 0x30 200000x100 0x110`},
	"SemelReplayRuns":          {`semel_store_replays{store="shop",consumer="billing"} 0x30 1x30 0x180`},
	"SemelUnknownCommits":      {`semel_batches_total{consumer="billing",end="unknown"} 0x30 0+1x20 20x190`},
}

// again contains further values with which an alert must fire. In the values of again, the backlog is longer than the
// limit up to which it is counted, so the backlog does not seem to grow.
var again = map[string][]string{
	"SemelBacklogBehindLowLag": {`semel_broker_lag_messages{consumer="billing"} 3x240`, `semel_store_rows{store="shop",consumer="billing",state="RECEIVED"} 390x60 0x180`, `semel_store_rows_at_least{store="shop",state="RECEIVED"} 0x30 1x30 0x180`},
}

// sound contains the values of a run without faults, with some duplicates and retries.
var sound = []string{
	`semel_backstops_total{consumer="billing"} 0x240`, `semel_conflicts_total{consumer="billing"} 0x240`, `semel_duplicates_total{consumer="billing"} 0+10x240`,
	`semel_deliveries_total{consumer="billing",source="kafka"} 0+1000x240`, `semel_without_key_total{consumer="billing"} 0x240`, `semel_intents_not_sent_again_total{consumer="billing"} 0x240`,
	`semel_store_rows{store="shop",consumer="billing",state="PARKED"} 2x240`, `semel_store_suppressed_effects{store="shop",consumer="billing"} 2x240`, `semel_store_rows{store="shop",consumer="billing",state="RECEIVED"} 0+20x20 400x220`, `semel_store_rows_at_least{store="shop",state="RECEIVED"} 0x240`,
	`semel_store_oldest_seconds{store="shop",consumer="billing",state="RECEIVED"} 3x240`, `semel_claims_total{consumer="billing",outcome="lost"} 0x240`, `semel_broker_lag_messages{consumer="billing"} 40x240`,
	`semel_store_gap_oldest_seconds{store="shop",consumer="billing"} 0x240`, `semel_unsettled_oldest_seconds{consumer="billing"} 2x240`, `semel_ready{consumer="billing"} 1x240`, `semel_alive{consumer="billing"} 1x240`,
	`semel_not_ready_total{consumer="billing",part="breaker"} 0x240`, `semel_not_ready_total{consumer="billing",part="store"} 0x100 3x140`,
	`semel_store_sample_stale{store="shop"} 0x240`, `semel_store_reaper_lag_seconds{store="shop",consumer="billing"} 3600x240`, `semel_store_reaper_progress_seconds{store="shop",consumer="billing"} 60x240`,
	`semel_webhook_requests_total{consumer="billing",fate="received"} 0+50x240`, `semel_webhook_requests_total{consumer="billing",fate="not_signed"} 0x50 1x50 2x140`,
	`semel_store_replays{store="shop",consumer="billing"} 0x240`, `semel_batches_total{consumer="billing",end="unknown"} 0x100 1x140`,
}

// writeSeries writes the values of two processes in the format of promtool.
func writeSeries(b *strings.Builder, all []string) {
	for _, s := range all {
		name, values, _ := strings.Cut(s, " ")
		for _, instance := range []string{"a", "b"} {
			fmt.Fprintf(b, "      - {series: '%s', values: '%s'}\n", strings.Replace(name, "}", `,instance="`+instance+`"}`, 1), values)
		}
	}
}

// writeStateTests writes two tests for promtool: whether an alert was in a state at some time within the four hours,
// and whether the alert is in this state at the end.
func writeStateTests(b *strings.Builder, alert, state string, ever bool) {
	samples := "[]"
	if ever {
		samples = "[{labels: '{}', value: 1}]"
	}
	fmt.Fprintf(b, "      - {expr: 'count(count_over_time(ALERTS{alertname=\"%s\",alertstate=\"%s\"}[4h])) > bool 0', eval_time: 4h, exp_samples: %s}\n", alert, state, samples)
}

func shippedRules(t *testing.T) (promtool, text string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: scripts/services install prometheus")
	}
	read, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return promtool, string(read)
}

func TestRules(t *testing.T) {
	promtool, text := shippedRules(t)
	path, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 1m\ntests:\n", path)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
		if faulty[m[1]] == nil {
			t.Errorf("no figures make %s fire", m[1])
			continue
		}
		for _, figures := range [][]string{faulty[m[1]], again[m[1]]} {
			if figures == nil {
				continue
			}
			fmt.Fprintf(&b, "  - interval: 1m\n    name: %s\n    input_series:\n", m[1])
			writeSeries(&b, figures)
			b.WriteString("    promql_expr_test:\n")
			writeStateTests(&b, m[1], "firing", true)
			fmt.Fprintf(&b, "      - {expr: 'ALERTS{alertname=\"%s\"}', eval_time: 4h, exp_samples: []}\n", m[1])
		}
	}
	b.WriteString("  - interval: 1m\n    name: a sound run\n    input_series:\n")
	writeSeries(&b, sound)
	b.WriteString("    promql_expr_test:\n")
	for _, name := range names {
		writeStateTests(&b, name, "firing", false)
	}
	file := filepath.Join(t.TempDir(), "figures.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("K5_promtool_reads_the_rules", func(t *testing.T) { ask(t, promtool, "check", "rules", rules) })
	t.Run("K5_each_rule_fires_on_its_fault_and_none_in_a_sound_run", func(t *testing.T) { ask(t, promtool, "test", "rules", file) })
}

func ask(t *testing.T, promtool string, args ...string) {
	t.Helper()
	if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
