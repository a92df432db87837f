package engine

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/store"
)

// adder is a meter that adds up its measurements, as the meter of a metrics library does.
type adder struct{ batches, messages, took atomic.Int64 }

func (*adder) Observe(semel.Event) {}

func (a *adder) Measure(b measure.Batch) {
	a.batches.Add(1)
	a.messages.Add(int64(b.Messages))
	a.took.Add(int64(b.Marking + b.Handling + b.Committing))
}

// reporterOf returns a reporter with the given observers.
func reporterOf(observers ...semel.Observer) *Reporter {
	return &Reporter{report.New("billing", slog.New(slog.DiscardHandler), observers, false)}
}

// measuring returns a worker with a meter, and a batch of one message.
func measuring() (*pilot[int], *flight[int]) {
	e := &Engine[int]{config: &Config{Guard: guard.Guard{Consumer: "billing"}}, Parts: Parts[int]{Reporter: reporterOf(&adder{})}}
	return &pilot[int]{engine: e}, &flight[int]{Flight: &machine.Flight{Entries: make([]machine.Entry, 1)}, began: time.Now()}
}

// measureFlight makes the calls that the engine makes for a batch only if there is a meter.
func measureFlight(p *pilot[int], f *flight[int]) {
	f.durations.Marking = p.measurePart(f)
	f.durations.Handling += p.measurePart(f)
	f.durations.Committing = p.measurePart(f)
	p.reportMeasurements(f, measure.Committed, store.NoCulprit)
}

// BenchmarkMeter measures the cost of a meter for a batch. For batches of one message, the cost for a batch is the cost
// per message.
func BenchmarkMeter(b *testing.B) {
	p, f := measuring()
	b.ReportAllocs()
	for b.Loop() {
		measureFlight(p, f)
	}
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	t.Run("K4_a_message_costs_no_allocation", func(t *testing.T) {
		p, f := measuring()
		if n := testing.AllocsPerRun(1000, func() { measureFlight(p, f) }); n != 0 {
			t.Errorf("a flight costs %v allocations", n)
		}
	})
}

// unsampling is a tracer that samples no message.
type unsampling struct{ adder }

func (*unsampling) TraceBatch(measure.Begun) measure.BatchTrace { panic("nothing is sampled") }

// tracingNothing returns a worker with a tracer, and a batch of unsampled messages. Half of the messages have no trace
// context, and half have a trace context that is not sampled.
func tracingNothing(messages int) (*pilot[int], *flight[int], []store.Verdict) {
	e := &Engine[int]{config: &Config{Guard: guard.Guard{Consumer: "billing"}}, Parts: Parts[int]{Reporter: reporterOf(&unsampling{})}}
	f := &flight[int]{Flight: &machine.Flight{Entries: make([]machine.Entry, messages)}, began: time.Now()}
	verdicts := make([]store.Verdict, messages)
	for i := range f.Entries {
		q := &delivery.Delivery{Message: semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte("1")}, {Name: "ce-type", Value: []byte("a")}, {Name: "content-type", Value: []byte("b")}}}}
		if i%2 == 0 {
			q.Message.Headers = append(q.Message.Headers, semel.Header{Name: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")})
		}
		q.Item.Handle = q
		f.Entries[i].Item, verdicts[i].Kind = &q.Item, store.Fresh
	}
	return &pilot[int]{engine: e}, f, verdicts
}

// traceNothing makes the calls that the engine makes for a batch of unsampled messages only if there is a tracer.
func traceNothing(p *pilot[int], f *flight[int], verdicts []store.Verdict) {
	p.trace(f, verdicts)
	for i := range f.Entries {
		f.entryContext(i, &f.Entries[i].Item.Handle.(*delivery.Delivery).Message)
	}
	p.reportMeasurements(f, measure.Committed, store.NoCulprit)
}

// BenchmarkTracerUnsampled measures the cost for unsampled messages, with and without a tracer.
func BenchmarkTracerUnsampled(b *testing.B) {
	for _, traced := range []bool{false, true} {
		b.Run(fmt.Sprintf("tracer=%t", traced), func(b *testing.B) {
			const batch = 100
			p, f, verdicts := tracingNothing(batch)
			if !traced {
				p.engine.Reporter = reporterOf()
			}
			b.ReportAllocs()
			for b.Loop() {
				traceNothing(p, f, verdicts)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/message")
		})
	}
}

func TestTracingNothingAllocatesNothing(t *testing.T) {
	t.Run("K4_what_is_not_sampled_costs_no_allocation", func(t *testing.T) {
		p, f, verdicts := tracingNothing(10)
		if n := testing.AllocsPerRun(1000, func() { traceNothing(p, f, verdicts) }); n != 0 {
			t.Errorf("a flight costs %v allocations", n)
		}
	})
}
