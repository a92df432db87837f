package alerts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Labels that an alert must have or must not have. Every process reports the values of a store, so an alert about a
// store names no process. An alert about a process must name the process, so that an operator can find it.
const (
	ofConsumer = `consumer="billing",store="",instance=""`
	ofStored   = `consumer="billing",store="shop",instance=""`
	ofProcess  = `consumer="billing",instance=~"a|b"`
	ofSampler  = `store="shop",instance=~"a|b"`
)

// edge is a test of a rule's threshold. In the field figures, "V" is replaced by a value. If two processes report the
// value of the field at, the alert must never fire. With the value of the field above, the alert must fire after the
// given number of minutes and not earlier.
type edge struct {
	alert, of string
	figures   []string // "V" is replaced by the tested value
	// normal is the value in a run without faults.
	normal, at, above string
	hold              int
}

const (
	rows = `semel_store_rows{store="shop",consumer="billing",state="%s"} `
	lag  = `semel_broker_lag_messages{consumer="billing"} `
)

var edges = []edge{
	{"SemelParked", ofStored, []string{fmt.Sprintf(rows, "PARKED") + "V", `semel_store_suppressed_effects{store="shop",consumer="billing"} 2x240`}, "0", "2", "3", 5},
	{"SemelPendingAge", ofStored, []string{`semel_store_oldest_seconds{store="shop",consumer="billing",state="RECEIVED"} V`}, "0", "900", "901", 5},
	{"SemelPendingAge", ofStored, []string{`semel_store_oldest_seconds{store="shop",consumer="billing",state="IN_PROGRESS"} V`}, "0", "900", "901", 5},
	{"SemelPendingAge", ofStored, []string{`semel_store_oldest_seconds{store="shop",consumer="billing",state="FAILED_RETRYABLE"} V`}, "0", "900", "901", 5},
	{"SemelGap", ofStored, []string{`semel_store_gap_oldest_seconds{store="shop",consumer="billing"} V`}, "0", "900", "901", 5},
	// the lag of two processes, which have different partitions
	{"SemelLag", ofConsumer, []string{lag + "V"}, "0", "5000", "5001", 15},
	{"SemelUnsettled", ofConsumer, []string{`semel_unsettled_oldest_seconds{consumer="billing"} V`}, "0", "600", "601", 5},
	{"SemelNotReady", ofProcess, []string{`semel_ready{consumer="billing"} V`}, "1", "1", "0", 2},
	{"SemelNotAlive", ofProcess, []string{`semel_alive{consumer="billing"} V`}, "1", "1", "0", 1},
	{"SemelStoreNotSampled", ofSampler, []string{`semel_store_sample_stale{store="shop"} V`}, "0", "0", "1", 5},
	{"SemelReaperBehind", ofStored, []string{`semel_store_reaper_lag_seconds{store="shop",consumer="billing"} V`}, "0", "172800", "172801", 60},
	{"SemelReaperBehind", ofStored, []string{`semel_store_reaper_progress_seconds{store="shop",consumer="billing"} V`}, "0", "86400", "86401", 60},
	{"SemelBacklogBehindLowLag", ofStored, []string{lag + "V", fmt.Sprintf(rows, "RECEIVED") + "2000+10x240"}, "50", "50", "49", 15},
	{"SemelBacklogBehindLowLag", ofStored, []string{lag + "0x240", fmt.Sprintf(rows, "RECEIVED") + "V", `semel_store_rows_at_least{store="shop",state="RECEIVED"} 1x240`}, "0", "100", "101", 15},
}

// shapes contains tests with growing values. With the first values no alert may fire. With the second values the alert
// must fire.
var shapes = []struct {
	alert, of    string
	quiet, fires []string
}{
	{"SemelBacklogBehindLowLag", ofStored, []string{lag + "0x240", fmt.Sprintf(rows, "RECEIVED") + "870+1x240"}, []string{lag + "0x240", fmt.Sprintf(rows, "RECEIVED") + "930+1x240"}},
	{"SemelBacklogBehindLowLag", ofStored, []string{lag + "0x240", fmt.Sprintf(rows, "RECEIVED") + "5000x240"}, []string{lag + "0x240", fmt.Sprintf(rows, "RECEIVED") + "5000+1x240"}},
	{"SemelDuplicateSpike", ofConsumer, duplicateSeries("0+50x240", "0+100x240"), duplicateSeries("0+51x240", "0+100x240")},
	{"SemelDuplicateSpike", ofConsumer, duplicateSeries("0+29x240", "0+30x240"), duplicateSeries("0+31x240", "0+32x240")},
	{"SemelDuplicateSpike", ofConsumer, duplicateSeries("0x30 0+90x7 630x200", "0+100x240"), duplicateSeries("0x30 0+90x25 2250x180", "0+100x240")},
	{"SemelBreakerOpen", ofProcess, []string{`semel_not_ready_total{consumer="billing",part="breaker"} 3x240`}, []string{`semel_not_ready_total{consumer="billing",part="breaker"} 3x30 4x210`}},
	{"SemelClockSetBack", ofConsumer, []string{`semel_not_ready_total{consumer="billing",part="clock"} 3x240`}, []string{`semel_not_ready_total{consumer="billing",part="clock"} 3x30 4x210`}},
	{"SemelUnknownCommits", ofConsumer, unknownSeries("0x30 2x210"), unknownSeries("0x30 3x210")},
	{"SemelWebhooksRefused", ofConsumer, refusedSeries("0x30 2x210"), refusedSeries("0x30 3x210")},
}

func duplicateSeries(copies, all string) []string {
	return []string{`semel_duplicates_total{consumer="billing"} ` + copies, `semel_deliveries_total{consumer="billing",source="kafka"} ` + all}
}

func unknownSeries(n string) []string {
	return []string{`semel_batches_total{consumer="billing",end="unknown"} ` + n}
}

func refusedSeries(n string) []string {
	return []string{`semel_webhook_requests_total{consumer="billing",fate="old"} ` + n}
}

// substitute returns the values of an edge, with "V" replaced.
func (e edge) substitute(values string) []string {
	var all []string
	for _, f := range e.figures {
		name, v, _ := strings.Cut(f, "} ")
		all = append(all, name+"} "+strings.Replace(v, "V", values, 1))
	}
	return all
}

// valuesAbove returns values that are above the threshold for the given number of minutes, followed by values of a
// run without faults.
func (e edge) valuesAbove(minutes int) string {
	return fmt.Sprintf("%sx29 %sx%d %sx%d", e.normal, e.above, minutes-1, e.normal, 209-minutes)
}

// writeAlertTest writes a test for promtool. If fires is true, the test checks that the alert fires with the given
// labels. If fires is false, the test checks that the alert does not fire with any labels.
func writeAlertTest(b *strings.Builder, name, alert, labels string, figures []string, fires bool) {
	samples := "[]"
	if fires {
		samples, labels = "[{labels: '{}', value: 1}]", ","+labels
	} else {
		labels = ""
	}
	fmt.Fprintf(b, "  - interval: 1m\n    name: %s, %s\n    input_series:\n", alert, name)
	writeSeries(b, figures)
	fmt.Fprintf(b, "    promql_expr_test:\n      - {expr: 'count(count_over_time(ALERTS{alertname=\"%s\",alertstate=\"firing\"%s}[2h])) > bool 0', eval_time: 2h, exp_samples: %s}\n", alert, labels, samples)
}

// withOnlyAlert returns the shipped rules with all alerts except one removed. With all alerts, promtool would
// evaluate nineteen alerts for each minute of each test.
func withOnlyAlert(text, alert string) string {
	const begin = "      - alert: "
	head, _, _ := strings.Cut(text, begin)
	_, rest, _ := strings.Cut(text, begin+alert+"\n")
	rule, _, _ := strings.Cut(rest, begin)
	return head + begin + alert + "\n" + rule
}

// edgesOf returns the tests of one alert, or "" if the alert has no tests.
func edgesOf(alert string) string {
	var b strings.Builder
	for _, e := range edges {
		if e.alert == alert {
			writeAlertTest(&b, "at its threshold", e.alert, e.of, e.substitute(e.at+"x240"), false)
			writeAlertTest(&b, "for less than its time", e.alert, e.of, e.substitute(e.valuesAbove(e.hold)), false)
			writeAlertTest(&b, "for its time", e.alert, e.of, e.substitute(e.valuesAbove(e.hold+1)), true)
		}
	}
	for _, s := range shapes {
		if s.alert == alert {
			writeAlertTest(&b, "less", s.alert, s.of, s.quiet, false)
			writeAlertTest(&b, "more", s.alert, s.of, s.fires, true)
		}
	}
	return b.String()
}

func TestWhereRulesBegin(t *testing.T) {
	promtool, text := shippedRules(t)
	folder := t.TempDir()
	asks := []string{"test", "rules"}
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)\n +expr: .*\n( +for: )?`).FindAllStringSubmatch(text, -1) {
		alert, waits := m[1], m[2] != ""
		tests := edgesOf(alert)
		if tests == "" {
			if waits {
				t.Errorf("nothing is known of where %s begins", alert)
			}
			continue
		}
		for name, content := range map[string]string{
			alert + ".yaml":       withOnlyAlert(text, alert),
			alert + ".tests.yaml": fmt.Sprintf("rule_files: [%s.yaml]\nevaluation_interval: 1m\ntests:\n%s", alert, tests),
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		asks = append(asks, filepath.Join(folder, alert+".tests.yaml"))
	}
	if len(asks) < 2+13 {
		t.Errorf("only %q are asked", asks)
	}
	t.Run("K5_each_rule_begins_where_it_says_after_its_time_and_names_whose_it_is", func(t *testing.T) { ask(t, promtool, asks...) })
}
