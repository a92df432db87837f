package metrics

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestThresholdsOfAPolicyReplaceTheDefaults(t *testing.T) {
	rules := PolicyRules([]Thresholds{{Consumer: "billing", PendingAge: time.Minute, Parked: 3}, {Consumer: "a.b", PendingAge: time.Hour, DuplicateSpike: true}})
	t.Run("K5_alerts_of_policies_become_rules", func(t *testing.T) {
		for _, want := range []string{
			`max by (store, consumer) (semel_store_oldest_seconds{consumer!~"billing|a\\.b",state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"}) > 900`,
			`max by (store, consumer) (semel_store_oldest_seconds{consumer="billing",state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"}) > 60`,
			`max by (store, consumer) (semel_store_oldest_seconds{consumer="a.b",state=~"RECEIVED|FAILED_RETRYABLE|IN_PROGRESS"}) > 3600`,
			`max by (store, consumer) (semel_store_rows{consumer!~"billing",state="PARKED"}) - max by (store, consumer) (semel_store_suppressed_effects{consumer!~"billing"}) > 0`,
			`max by (store, consumer) (semel_store_rows{consumer="billing",state="PARKED"}) - max by (store, consumer) (semel_store_suppressed_effects{consumer="billing"}) > 2`,
			`(rate(semel_duplicates_total{consumer="a.b"}[10m])) > 0'`,
		} {
			if !strings.Contains(rules, want) {
				t.Errorf("no rule has %s:\n%s", want, rules)
			}
		}
		if same := PolicyRules(nil); same[strings.Index(same, "groups:"):] != Rules()[strings.Index(Rules(), "groups:"):] {
			t.Errorf("without settings in the policy they are not the default rules:\n%s", same)
		}
	})
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is missing: scripts/services install prometheus")
		return
	}
	t.Run("K5_promtool_finds_each_at_its_threshold_and_no_other", func(t *testing.T) {
		folder := t.TempDir()
		for name, text := range map[string]string{"rules.yaml": rules, "test.yaml": policyFigures} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, arguments := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "test.yaml"}} {
			c := exec.Command(promtool, arguments...)
			c.Dir = folder
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		}
	})
}

// policyFigures are series for testing rules: a message waits for half an hour, four messages are parked,
// and a duplicate arrives every ten seconds.
const policyFigures = `rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'semel_store_oldest_seconds{store="shop",consumer="billing",state="RECEIVED"}', values: '1800x60'}
      - {series: 'semel_store_oldest_seconds{store="shop",consumer="a.b",state="RECEIVED"}', values: '1800x60'}
      - {series: 'semel_store_oldest_seconds{store="shop",consumer="aXb",state="RECEIVED"}', values: '1800x60'}
      - {series: 'semel_store_rows{store="shop",consumer="billing",state="PARKED"}', values: '2x20 3x40'}
      - {series: 'semel_store_rows{store="shop",consumer="a.b",state="PARKED"}', values: '5x60'}
      - {series: 'semel_store_suppressed_effects{store="shop",consumer="billing"}', values: '0x60'}
      - {series: 'semel_store_suppressed_effects{store="shop",consumer="a.b"}', values: '4x60'}
      - {series: 'semel_duplicates_total{consumer="a.b"}', values: '0+6x60'}
      - {series: 'semel_deliveries_total{consumer="a.b"}', values: '0+7x60'}
      - {series: 'semel_duplicates_total{consumer="billing"}', values: '0+6x60'}
      - {series: 'semel_deliveries_total{consumer="billing"}', values: '0+7x60'}
    promql_expr_test:
      - expr: 'count by (alertname, consumer) (ALERTS{alertstate="firing"})'
        eval_time: 15m
        exp_samples:
          - {labels: '{alertname="SemelPendingAge", consumer="billing"}', value: 1}
          - {labels: '{alertname="SemelPendingAge", consumer="aXb"}', value: 1}
          - {labels: '{alertname="SemelParked", consumer="a.b"}', value: 1}
          - {labels: '{alertname="SemelDuplicateSpike", consumer="a.b"}', value: 1}
      - expr: 'count by (consumer) (ALERTS{alertname="SemelParked", alertstate="firing"})'
        eval_time: 40m
        exp_samples:
          - {labels: '{consumer="a.b"}', value: 1}
          - {labels: '{consumer="billing"}', value: 1}
`
