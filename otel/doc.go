// Package otel tells OpenTelemetry of consumers: figures through a metric.MeterProvider and spans
// through a trace.TracerProvider, which the program chooses with their exporters.
//
//	meter, err := otel.NewMeter(meterProvider, "kafka")
//	tracer := otel.NewTracer(tracerProvider, "kafka")
//	config.Observers = []semel.Observer{meter, tracer}
//	billing, err := consumer.New(store, handle, config)
//	stop, err := meter.Watch("billing", billing)
//
// Names and labels of figures are those of docs/metrics.md, and docs/traces.md says what spans
// there are. Neither has anything of a payload, an id or a text of an error. Messages whose trace
// is not sampled cost no allocation.
package otel

// scope is the name of the instrumentation.
const scope = "github.com/semel-go/semel/otel"

// The labels and attributes.
const (
	labelConsumer = "consumer"
	labelSource   = "source"
)
