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

// gate lets as many spans into the SDK's queue as it has room for, and counts the others: the
// queue itself drops without a word.
type gate struct {
	next     sdktrace.SpanProcessor
	to       sdktrace.SpanExporter
	log      *slog.Logger
	endpoint string

	waiting, sent, dropped atomic.Int64

	mutex sync.Mutex
	// away is since when the collector takes nothing, zero while it does, and told when that
	// was logged last. Guarded by mutex.
	away, told time.Time
}

// tellEvery is how often a collector that takes nothing is logged.
const tellEvery = time.Minute

// OnStart implements sdktrace.SpanProcessor.
func (*gate) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It waits for nobody.
func (g *gate) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.waiting.Add(1) > queued {
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

// exporter sends for a gate what the SDK's queue gives it.
type exporter struct{ of *gate }

// ExportSpans implements sdktrace.SpanExporter. What fails is counted and told here: the SDK
// would write it to standard error.
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

// observe logs that the collector accepts nothing, at first and once a minute, and that it accepts spans again.
func (g *gate) observe(err error, now time.Time) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case err == nil && !g.away.IsZero():
		g.log.Info("the collector takes spans again", "endpoint", g.endpoint, "dropped", g.dropped.Load())
		g.away, g.told = time.Time{}, time.Time{}
	case err != nil && now.Sub(g.told) >= tellEvery:
		if g.away.IsZero() {
			g.away = now
		}
		g.told = now
		g.log.Warn("the collector does not take spans; they are dropped, and messages go on", "endpoint", g.endpoint, "dropped", g.dropped.Load(), "error", shown(err))
	}
}

// mostShown is how many bytes of an error are logged: a collector's whole answer may stand in it.
const mostShown = 2000

func shown(err error) string {
	text := err.Error()
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "…"
	}
	return text
}

// close counts what still waits as dropped, and says how many that are.
func (g *gate) close() int64 {
	left := g.waiting.Swap(0)
	g.dropped.Add(left)
	return left
}
