package otel_test

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/otel"
)

func TestLabelsOfSpansAreThoseOfFigures(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := otel.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), "")
	batch := tracer.TraceBatch(measure.Begun{Consumer: "billing@2", Messages: 2, At: time.Now()})
	for _, reason := range []semel.Reason{"account 17", semel.ReasonGap} {
		parent, _ := tracedMessage(1, "01").TraceContext()
		batch.TraceMessage(parent).End(measure.MessageEnd{Ending: "parked", Reason: reason})
	}
	batch.End(measure.Batch{})
	spans := exporter.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	t.Run("K4_of_a_generation_they_are_its_consumers", func(t *testing.T) {
		for _, s := range spans {
			if a := attributes(s); a["consumer"] != "billing" || a["source"] != "none" || s.Name != "process billing" && s.Name != "batch billing" {
				t.Errorf("%s: %v", s.Name, a)
			}
		}
	})
	t.Run("trap_86_reasons_that_handlers_make_up_are_one_label", func(t *testing.T) {
		if a, b := attributes(spans[0])["reason"], attributes(spans[1])["reason"]; a != "other" || b != "gap" {
			t.Errorf("%q and %q", a, b)
		}
	})
}
