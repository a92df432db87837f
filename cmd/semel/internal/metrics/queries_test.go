package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricInQuery matches a metric in a query, with aggregation, labels of the aggregation, function and
// conditions.
var metricInQuery = regexp.MustCompile(`(?:(sum|max|min) by \(([a-z_, ]*)\) \()?(?:(rate|increase|deriv)\()?(semel_[a-z_]+)(?:\{([^}]*)\})?(?:\[)?`)

// condition matches one label and its value in conditions.
var condition = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"[^"]*"`)

// faultsOf returns the faults of a query: a label that the metric lacks, the rate of a gauge, a counter
// without rate, or a sum of values that several processes read from the same store.
func faultsOf(expr string) (faults []string) {
	fault := func(text ...string) { faults = append(faults, strings.Join(text, " ")) }
	for _, found := range metricInQuery.FindAllStringSubmatch(expr, -1) {
		how, by, of, name, conditions := found[1], found[2], found[3], found[4], found[5]
		whole := name
		for _, of := range []string{"_bucket", "_sum", "_count"} {
			whole = strings.TrimSuffix(whole, of)
		}
		if !exportedSeries()[whole] {
			fault("nobody tells", name)
			continue
		}
		m, labels := entry(whole)
		known := append([]string{"instance"}, labels...)
		if strings.HasSuffix(name, "_bucket") {
			known = append(known, "le")
		}
		for _, label := range strings.Split(by, ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(known, label) {
				fault(name, "has no label", label)
			}
		}
		for _, c := range condition.FindAllStringSubmatch(conditions, -1) {
			if !slices.Contains(known, c[1]) {
				fault(name, "has no label", c[1])
			}
		}
		if grows := m.kind != gauge; grows != (of == "rate" || of == "increase") {
			fault(name, "is a", string(m.kind), "and is asked for its", of)
		}
		if strings.HasPrefix(name, "semel_store_") && how != "max" {
			fault(name, "is read by each process, and is asked for its", how)
		}
	}
	return faults
}

func TestQueriesFitTheirMetrics(t *testing.T) {
	all := map[string]string{}
	for _, a := range alerts() {
		all[a.name] = a.expr
	}
	for _, r := range dashboard() {
		for _, p := range r.panels {
			for _, q := range p.queries {
				all[p.title+": "+q.legend] = q.expr
				for _, label := range regexp.MustCompile(`\{\{([a-z]+)\}\}`).FindAllStringSubmatch(q.legend, -1) {
					if !regexp.MustCompile(`by \([^)]*\b` + label[1] + `\b[^)]*\)`).MatchString(q.expr) {
						t.Errorf("the lines of %q are named by %s, which the result lacks", p.title, label[1])
					}
				}
			}
		}
	}
	t.Run("K5_by_their_labels_and_by_what_they_do", func(t *testing.T) {
		for name, expr := range all {
			for _, fault := range faultsOf(expr) {
				t.Errorf("%s: %s in %s", name, fault, expr)
			}
		}
	})
	t.Run("K5_one_that_does_not_is_found", func(t *testing.T) {
		for _, wrong := range []string{"sum by (outcome) (rate(semel_endings_total[5m]))", "sum by (consumer) (rate(semel_unsettled_bytes[5m]))", "sum by (consumer) (semel_effects_total)",
			"sum by (store, consumer) (semel_store_gap_oldest_seconds)", `max by (store) (semel_store_rows{kind="PARKED"})`, "semel_store_replays > 0"} {
			if len(faultsOf(wrong)) == 0 {
				t.Errorf("no fault was found in %s", wrong)
			}
		}
	})
}
