package otel_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/otel"
)

// collectedMetrics has the collected values by name and labels, and the label names and kind of each metric.
type collectedMetrics struct {
	figures map[string]float64
	labels  map[string][]string
	kinds   map[string]string
}

func collect(t *testing.T, reader *metric.ManualReader) collectedMetrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := collectedMetrics{map[string]float64{}, map[string][]string{}, map[string]string{}}
	add := func(name, kind string, set attribute.Set, is float64) {
		labels := []string{}
		for _, a := range set.ToSlice() {
			labels = append(labels, string(a.Key))
		}
		slices.Sort(labels)
		out.labels[name], out.kinds[name] = labels, kind
		out.figures[name+" "+set.Encoded(attribute.DefaultEncoder())] = is
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, "counter", p.Attributes, p.Value)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, "counter", p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, "gauge", p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, "histogram", p.Attributes, float64(p.Count))
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, "histogram", p.Attributes, float64(p.Sum))
				}
			default:
				t.Errorf("%s is a %T", m.Name, d)
			}
		}
	}
	return out
}

// passEveryEvent passes one event of each kind to a Meter.
func passEveryEvent(m *otel.Meter) {
	for _, e := range []semel.Event{
		{Kind: eventkind.Contended}, {Kind: eventkind.Backstop}, {Kind: eventkind.RetriesWait}, {Kind: semel.EventParked, Reason: semel.Reason(secret)},
		{Kind: semel.EventDiscarded}, {Kind: eventkind.Control, Reason: semel.ReasonPaused}, {Kind: eventkind.Serial}, {Kind: eventkind.Parallel},
		{Kind: semel.EventNotReady, Reason: "keys"}, {Kind: semel.EventNotReady, Reason: semel.Reason(secret)},
	} {
		e.Consumer, e.Messages = "billing@2", 1
		m.Observe(e)
	}
}

func TestFigures(t *testing.T) {
	watched := func(t *testing.T) (*otel.Meter, *metric.ManualReader, func() error) {
		reader := metric.NewManualReader()
		m, err := otel.NewMeter(metric.NewMeterProvider(metric.WithReader(reader)), "kafka")
		if err != nil {
			t.Fatal(err)
		}
		c := run(t, []semel.Observer{m}, tracedMessage(1, ""), tracedMessage(2, ""), tracedMessage(3, ""))
		stop, err := m.Watch("billing", c)
		if err != nil {
			t.Fatal(err)
		}
		return m, reader, stop
	}
	bubble(t, "K4_a_run_is_told", func(t *testing.T) {
		_, reader, stop := watched(t)
		got := collect(t, reader)
		for figure, want := range map[string]float64{
			"semel_deliveries_total consumer=billing,source=kafka": 3, "semel_endings_total consumer=billing,ending=applied,source=kafka": 2, "semel_effects_total consumer=billing": 2,
			"semel_unapplied_total consumer=billing,how=parked,reason=permanent failure": 1, "semel_workers consumer=billing,state=all": 0, "semel_alive consumer=billing": 1,
		} {
			if is, there := got.figures[figure]; !there || is != want {
				t.Errorf("%s is %v (%t), not %v", figure, is, there, want)
			}
		}
		if got.figures["semel_batches_total consumer=billing,end=committed"] == 0 || got.figures["semel_batch_messages consumer=billing"] < 3 || got.figures["semel_batch_commit_seconds consumer=billing"] != 0 {
			t.Errorf("batches: %v", got.figures)
		}
		for _, figure := range []string{"semel_backstops_total consumer=billing", "semel_unapplied_total consumer=billing,how=dead_lettered,reason=unknown type",
			"semel_not_ready_total consumer=billing,part=keys", "semel_batches_total consumer=billing,end=unknown"} {
			if is, there := got.figures[figure]; !there || is != 0 {
				t.Errorf("%s is %v (%t), want 0 before the first event", figure, is, there)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if _, there := collect(t, reader).figures["semel_alive consumer=billing"]; there {
			t.Error("the consumer was read after stop")
		}
	})
	bubble(t, "trap_86_labels_are_closed_and_say_nothing_of_a_message", func(t *testing.T) {
		m, reader, _ := watched(t)
		passEveryEvent(m)
		got := collect(t, reader)
		for figure := range got.figures {
			if strings.Contains(figure, secret) || strings.Contains(figure, "@2") {
				t.Errorf("%s", figure)
			}
		}
		if got.figures["semel_unapplied_total consumer=billing,how=parked,reason=other"] != 1 || got.figures["semel_paused consumer=billing"] != 1 || got.figures["semel_contended_total consumer=billing"] != 1 {
			t.Errorf("%v", got.figures)
		}
	})
	bubble(t, "K4_names_kinds_and_labels_are_those_of_the_documentation", func(t *testing.T) {
		m, reader, _ := watched(t)
		passEveryEvent(m)
		m.Measure(measure.Batch{Consumer: "billing", Handling: 1, Committing: 1})
		got, told := collect(t, reader), documentedMetrics(t)
		for name, kind := range got.kinds {
			want, there := told[name]
			if have := fmt.Sprint(kind, " ", got.labels[name]); !there || have != want {
				t.Errorf("%s is %q here and %q in docs/reference/metrics.md", name, have, want)
			}
		}
		for name := range told {
			if _, there := got.kinds[name]; !there && !ofTheBinary(name) {
				t.Errorf("docs/reference/metrics.md lists %s, but the meter does not report it", name)
			}
		}
	})
}

// ofTheBinary reports whether only the binary semel has a metric. The metrics of the binary are about stores, brokers,
// webhooks, the span collector and the policy.
func ofTheBinary(name string) bool {
	for _, of := range []string{"semel_store_", "semel_webhook_", "semel_spans_", "semel_broker_lag_messages", "semel_residual_risk"} {
		if strings.HasPrefix(name, of) {
			return true
		}
	}
	return false
}

var documentedRow = regexp.MustCompile("(?m)^\\| `(semel_\\w+)` \\| (\\w+) \\| ([^|]*) \\|")

// documentedMetrics returns the kind and the labels of each metric in docs/reference/metrics.md.
func documentedMetrics(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range documentedRow.FindAllStringSubmatch(string(text), -1) {
		labels := []string{}
		for _, label := range strings.Split(row[3], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		out[row[1]] = fmt.Sprint(row[2], " ", labels)
	}
	if len(out) < 30 {
		t.Fatalf("docs/reference/metrics.md has %d metrics; the reading is broken", len(out))
	}
	return out
}

func TestAMessageCostsNoAllocation(t *testing.T) {
	t.Run("K4_a_batch_costs_no_allocation", func(t *testing.T) {
		for name, m := range newMeters(t) {
			if n := testing.AllocsPerRun(1000, func() {
				m.Measure(measure.Batch{Consumer: "billing", Messages: 1, Marking: 1, Handling: 1, Committing: 1})
			}); n != 0 {
				t.Errorf("%s: a batch costs %v allocations", name, n)
			}
		}
	})
}

// newMeters returns one Meter whose provider does nothing, and one Meter with the SDK.
func newMeters(t testing.TB) map[string]*otel.Meter {
	silent, err := otel.NewMeter(noop.NewMeterProvider(), "")
	if err != nil {
		t.Fatal(err)
	}
	read, err := otel.NewMeter(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), "kafka")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*otel.Meter{"noop": silent, "sdk": read}
}

// BenchmarkMeasure measures the cost of metrics for a batch. A batch of one message has the same cost.
func BenchmarkMeasure(b *testing.B) {
	for name, m := range newMeters(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Measure(measure.Batch{Consumer: "billing", Messages: 1, Marking: 1, Handling: 1, Committing: 1})
			}
		})
	}
}
