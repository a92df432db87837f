package otel_test

import (
	"context"
	"fmt"
	"log/slog"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/otel"
	"github.com/semel-go/semel/sourcetest"
)

// A program chooses its exporters. This example keeps spans in memory and reads no metrics.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	tracerProvider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	meterProvider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))

	meter, err := otel.NewMeter(meterProvider, "kafka")
	if err != nil {
		fmt.Println(err)
		return
	}
	source := sourcetest.NewMemory(1)
	_ = source.Publish(0, &semel.Message{Body: []byte(`{"amount":30}`), Headers: semel.Headers{
		{Name: "id", Value: []byte("payment-1")}, {Name: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
	}})
	_ = source.End()
	billing, err := consumer.New(memstore.New(), func(ctx context.Context, tx *memstore.Tx, _ *semel.Message) error {
		fmt.Println("the handler runs in trace", trace.SpanContextFromContext(ctx).TraceID())
		return tx.Add("account", 30)
	}, consumer.Config{
		Name: "billing", Source: source, Identity: identity.By("header:id"), Logger: slog.New(slog.DiscardHandler),
		Observers: []semel.Observer{meter, otel.NewTracer(tracerProvider, "kafka")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := meter.Watch("billing", billing)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	if err := billing.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, "has", len(s.Links), "links")
	}
	// Output:
	// the handler runs in trace 0af7651916cd43dd8448eb211c80319c
	// process billing has 1 links
	// batch billing has 0 links
}
