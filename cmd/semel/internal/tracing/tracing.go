// Package tracing sends the spans of a run to a collector, with the OpenTelemetry SDK and OTLP over HTTP.
// Messages never wait for spans. If the queue is full or the collector rejects spans, the spans are dropped
// and counted.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/otel"
)

// The limits of the span queue and of requests to the collector.
const (
	// maxQueued is the maximum number of spans in memory.
	maxQueued = 4096
	// maxBatch is the maximum number of spans in one request.
	maxBatch = 512
	// batchDelay is how long a span waits so that several spans can be sent in one request.
	batchDelay = time.Second
	// requestTimeout is the timeout of a request, including retries.
	requestTimeout = 10 * time.Second
	// closeTimeout is how long Close waits for queued spans.
	closeTimeout = 5 * time.Second
)

// Options configure a Tracer.
type Options struct {
	// Endpoint is the complete URL of the collector.
	Endpoint string
	// Ratio is the share of sampled traces that are recorded; 0 means all.
	Ratio float64
	// Sources maps consumers to the kinds of their sources.
	Sources map[string]string
	// Logger logs when the collector rejects spans.
	Logger *slog.Logger
}

// Tracer observes consumers and records spans of sampled messages.
type Tracer struct {
	of       map[string]*otel.Tracer // the tracers by consumer; constant after Open
	provider *sdktrace.TracerProvider
	gate     *gate
}

var _ measure.Tracer = (*Tracer)(nil)

// Open returns a Tracer without connecting to the collector. Because Open does not connect, a run can start
// while the collector is down.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	api.SetLogger(logr.New(logSink{o.Logger}))
	to, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithTimeout(requestTimeout))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return sendBy(ctx, to, o)
}

// sendBy returns a Tracer that sends spans to the given exporter.
func sendBy(ctx context.Context, to sdktrace.SpanExporter, o Options) (*Tracer, error) {
	// Attributes in environment variables take precedence over the attributes that sendBy sets.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "semel")), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &Tracer{of: map[string]*otel.Tracer{}, gate: &gate{to: to, log: o.Logger, endpoint: o.Endpoint}}
	t.gate.next = sdktrace.NewBatchSpanProcessor(exporter{t.gate}, sdktrace.WithMaxQueueSize(maxQueued), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithBatchTimeout(batchDelay), sdktrace.WithExportTimeout(requestTimeout))
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler(o.Ratio)), sdktrace.WithSpanProcessor(t.gate), sdktrace.WithResource(about))
	for name, source := range o.Sources {
		t.of[name] = otel.NewTracer(t.provider, source)
	}
	return t, nil
}

// sampler returns a sampler that records every span. If a ratio is set, the sampler records only the given
// share of all traces. Consumers start spans only for messages with a sampled parent span, and for batches
// that contain such a message.
func sampler(ratio float64) sdktrace.Sampler {
	if ratio > 0 && ratio < 1 {
		return sdktrace.TraceIDRatioBased(ratio)
	}
	return sdktrace.AlwaysSample()
}

// Observe implements semel.Observer.
func (*Tracer) Observe(semel.Event) {}

// TraceBatch implements measure.Tracer.
func (t *Tracer) TraceBatch(b measure.Begun) measure.BatchTrace {
	name, _ := admin.GenerationOf(b.Consumer)
	of := t.of[name]
	if of == nil {
		return nil
	}
	return of.TraceBatch(b)
}

// Spans returns the number of spans that the collector accepted and the number of dropped spans.
func (t *Tracer) Spans() (sent, dropped int64) { return t.gate.sent.Load(), t.gate.dropped.Load() }

// Close sends the queued spans. Close waits at most a few seconds, and logs the number of spans that were
// not sent. For a nil Tracer, Close does nothing.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	if left := t.gate.close(); left > 0 {
		t.gate.log.Warn("spans were not sent before the process ended", "spans", left, "error", err)
	}
}
