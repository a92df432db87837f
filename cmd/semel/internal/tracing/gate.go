package tracing

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// gate gives spans to the queue of the OpenTelemetry SDK while the queue has room. When the queue has no
// room, spans are dropped and counted. Without gate, the SDK would drop spans without counting the dropped
// spans.
type gate struct {
	next     sdktrace.SpanProcessor
	to       sdktrace.SpanExporter
	log      *slog.Logger
	endpoint string

	waiting, sent, dropped atomic.Int64

	mutex sync.Mutex
	// rejectedSince is the time since which the collector rejects spans; zero while the collector accepts
	// spans. loggedAt is the time of the last log line about rejected spans. The field mutex guards
	// rejectedSince and loggedAt.
	rejectedSince, loggedAt time.Time
}

// logInterval is the interval of log lines while the collector rejects spans.
const logInterval = time.Minute

// OnStart implements sdktrace.SpanProcessor.
func (*gate) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor without waiting.
func (g *gate) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.waiting.Add(1) > maxQueued {
		g.waiting.Add(-1)
		g.dropped.Add(1)
		return
	}
	g.next.OnEnd(s)
}

// Shutdown implements sdktrace.SpanProcessor.
func (g *gate) Shutdown(ctx context.Context) error { return g.next.Shutdown(ctx) }

// ForceFlush implements sdktrace.SpanProcessor.
func (g *gate) ForceFlush(ctx context.Context) error { return g.next.ForceFlush(ctx) }

// exporter sends spans from the SDK's queue to the collector.
type exporter struct{ of *gate }

// ExportSpans implements sdktrace.SpanExporter. ExportSpans counts and logs errors itself, because the SDK
// would print them to standard error.
func (e exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	g, n := e.of, int64(len(spans))
	err := g.to.ExportSpans(ctx, spans)
	g.waiting.Add(-n)
	if err == nil {
		g.sent.Add(n)
	} else {
		g.dropped.Add(n)
	}
	g.observe(err, time.Now())
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e exporter) Shutdown(ctx context.Context) error { return e.of.to.Shutdown(ctx) }

// observe logs when the collector starts to reject spans, once a minute while it rejects spans, and when it
// accepts spans again.
func (g *gate) observe(err error, now time.Time) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case err == nil && !g.rejectedSince.IsZero():
		g.log.Info("the collector accepts spans again", "endpoint", g.endpoint, "dropped", g.dropped.Load())
		g.rejectedSince, g.loggedAt = time.Time{}, time.Time{}
	case err != nil && now.Sub(g.loggedAt) >= logInterval:
		if g.rejectedSince.IsZero() {
			g.rejectedSince = now
		}
		g.loggedAt = now
		g.log.Warn("the collector does not accept spans; they are dropped, and messages are processed as usual", "endpoint", g.endpoint, "dropped", g.dropped.Load(), "error", shortenError(err))
	}
}

// mostShown is the maximum length of a logged error, in bytes. The error can contain the collector's
// complete response.
const mostShown = 2000

func shortenError(err error) string {
	text := err.Error()
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "…"
	}
	return text
}

// close counts the queued spans as dropped and returns their number.
func (g *gate) close() int64 {
	left := g.waiting.Swap(0)
	g.dropped.Add(left)
	return left
}
