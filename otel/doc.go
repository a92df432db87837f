// Package otel reports consumers to OpenTelemetry: metrics to a metric.MeterProvider and spans to a
// trace.TracerProvider. The program chooses the two providers with their exporters.
//
//	meter, err := otel.NewMeter(meterProvider, "kafka")
//	tracer := otel.NewTracer(tracerProvider, "kafka")
//	config.Observers = []semel.Observer{meter, tracer}
//	billing, err := consumer.New(store, handle, config)
//	stop, err := meter.Watch("billing", billing)
//
// docs/reference/metrics.md lists the metrics with their labels, and docs/operate/traces.md the spans. Metrics and
// spans contain no payloads, ids or texts of errors. Messages whose trace is not sampled cost no allocation.
package otel

// scope is the name of the instrumentation scope.
const scope = "github.com/semel-go/semel/otel"

// Labels of metrics and attributes of spans.
const (
	labelConsumer = "consumer"
	labelSource   = "source"
)
