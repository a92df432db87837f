package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/measure"
)

// Attributes of spans, in addition to the labels of metrics.
const (
	attributeMessages = "messaging.batch.message_count"
	attributeEnd      = "end"
	attributeEnding   = "ending"
	attributeReason   = "reason"
	attributeMark     = "mark_seconds"
	attributeHandle   = "handle_seconds"
	attributeCommit   = "commit_seconds"
)

// Tracer creates spans for sampled messages and their batches. As an observer (consumer.Config.Observers) a
// Tracer can serve any number of consumers.
type Tracer struct {
	tracer trace.Tracer
	source string
}

// NewTracer returns a Tracer for a provider. The parameter source is the kind of the consumers' source, such as "kafka"
// or "file"; an empty text means "none".
func NewTracer(provider trace.TracerProvider, source string) *Tracer {
	return &Tracer{provider.Tracer(scope), sourceKind(source)}
}

func sourceKind(source string) string {
	if source == "" {
		return "none"
	}
	return source
}

// Observe implements semel.Observer.
func (*Tracer) Observe(semel.Event) {}

// TraceBatch implements measure.Tracer. The span of a batch is the root of a new trace, because the messages
// of the batch belong to many traces. The provider's sampler for root spans decides whether the span is
// recorded.
func (t *Tracer) TraceBatch(b measure.Begun) measure.BatchTrace {
	name, _ := admin.GenerationOf(b.Consumer)
	out := &batchTrace{tracer: t.tracer, name: name, at: b.At, about: []attribute.KeyValue{attribute.String(labelConsumer, name), attribute.String(labelSource, t.source)}}
	_, out.span = t.tracer.Start(context.Background(), "batch "+name, trace.WithNewRoot(), trace.WithTimestamp(b.At), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(out.about...), trace.WithAttributes(attribute.Int(attributeMessages, b.Messages)))
	return out
}

// batchTrace implements measure.BatchTrace.
type batchTrace struct {
	tracer trace.Tracer
	name   string
	at     time.Time
	about  []attribute.KeyValue
	span   trace.Span
}

// Context implements measure.BatchTrace.
func (b *batchTrace) Context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, b.span)
}

// TraceMessage implements measure.BatchTrace. The span of a message is a child of the producer's span, has the same
// sampling decision, and links to the span of the batch. The span of the batch does not link to the messages, because a
// batch may have thousands of messages, and providers limit the links of a span to some hundred.
func (b *batchTrace) TraceMessage(parent semel.TraceContext) measure.MessageTrace {
	options := []trace.SpanStartOption{trace.WithTimestamp(b.at), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(b.about...)}
	if batch := b.span.SpanContext(); batch.IsSampled() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: batch}))
	}
	_, span := b.tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), remote(parent)), "process "+b.name, options...)
	if !span.IsRecording() {
		span.End()
		return nil
	}
	return &messageTrace{span}
}

// remote converts a trace context to OpenTelemetry's type. If the tracestate is malformed, remote drops it, as W3C
// Trace Context requires (section 3.3).
func remote(t semel.TraceContext) trace.SpanContext {
	state, err := trace.ParseTraceState(t.State)
	if err != nil {
		state = trace.TraceState{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: t.TraceID, SpanID: t.SpanID, TraceFlags: trace.TraceFlags(t.Flags), TraceState: state, Remote: true})
}

// End implements measure.BatchTrace.
func (b *batchTrace) End(m measure.Batch) {
	b.span.SetAttributes(attribute.String(attributeEnd, m.End.String()), attribute.Float64(attributeMark, m.Marking.Seconds()),
		attribute.Float64(attributeHandle, m.Handling.Seconds()), attribute.Float64(attributeCommit, m.Committing.Seconds()))
	b.span.End()
}

// messageTrace implements measure.MessageTrace.
type messageTrace struct{ span trace.Span }

// Context implements measure.MessageTrace.
func (m *messageTrace) Context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, m.span)
}

// TraceContext implements measure.MessageTrace.
func (m *messageTrace) TraceContext() semel.TraceContext {
	at := m.span.SpanContext()
	return semel.TraceContext{TraceID: at.TraceID(), SpanID: at.SpanID(), Flags: byte(at.TraceFlags()), State: at.TraceState().String()}
}

// End implements measure.MessageTrace. End does not record the text of the error, because the text may quote a
// payload.
func (m *messageTrace) End(e measure.MessageEnd) {
	m.span.SetAttributes(attribute.String(attributeEnding, e.Ending))
	if e.Reason != reasonname.None {
		m.span.SetAttributes(attribute.String(attributeReason, measure.ReasonClass(e.Reason)))
	}
	if e.Failed {
		m.span.SetStatus(codes.Error, "")
	}
	m.span.End()
}
