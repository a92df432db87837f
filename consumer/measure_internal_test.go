package consumer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/measure"
)

// adder is a meter that adds up, as one over a library of metrics does.
type adder struct{ batches, messages, took atomic.Int64 }

func (*adder) Observe(semel.Event) {}

func (a *adder) Measure(b measure.Batch) {
	a.batches.Add(1)
	a.messages.Add(int64(b.Messages))
	a.took.Add(int64(b.Marking + b.Handling + b.Committing))
}

// measuring is a pilot with a meter, and a flight of one message.
func measuring() (*pilot[int], *flight[int]) {
	e := &engine[int]{reporter: &reporter{consumer: "billing", meters: []measure.Meter{&adder{}}}}
	return &pilot[int]{engine: e}, &flight[int]{Flight: &machine.Flight{Entries: make([]machine.Entry, 1)}, began: time.Now()}
}

// measureFlight is all that measuring adds to a flight.
func measureFlight(p *pilot[int], f *flight[int]) {
	f.figures.Marking = p.lap(f)
	f.figures.Handling += p.lap(f)
	f.figures.Committing = p.lap(f)
	p.measured(f, measure.Committed)
}

// BenchmarkMeter is what measuring costs a flight, and so a message that flies alone.
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
