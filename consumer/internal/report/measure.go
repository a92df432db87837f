package report

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/measure"
)

// metersOf returns the observers that are meters.
func metersOf(observers []semel.Observer) (meters []measure.Meter) {
	for _, o := range observers {
		if m, measures := o.(measure.Meter); measures {
			meters = append(meters, m)
		}
	}
	return meters
}

// tracerOf returns the observer that is a tracer, or nil.
func tracerOf(observers []semel.Observer) measure.Tracer {
	for _, o := range observers {
		if t, traces := o.(measure.Tracer); traces {
			return t
		}
	}
	return nil
}

// Measures reports whether there is a meter or a tracer. Meters and tracers need durations.
func (n *Reporter) Measures() bool { return n.meters != nil || n.tracer != nil }

// Measure passes the figures of a batch to all meters.
func (n *Reporter) Measure(b measure.Batch) {
	for i := range n.meters {
		n.measure(i, b)
	}
}

// Tracer returns the tracer, or nil if there is none or if it has panicked.
func (n *Reporter) Tracer() measure.Tracer {
	if n.untraced.Load() {
		return nil
	}
	return n.tracer
}

// measure calls one meter. The first panic is logged.
func (n *Reporter) measure(i int, m measure.Batch) {
	defer func() {
		if value := recover(); value != nil && !n.unmetered.Swap(true) {
			guard.LogPanic(n.logger, n.consumer, fmt.Sprintf("meter %d of %d (a %T)", i+1, len(n.meters), n.meters[i]), value)
		}
	}()
	n.meters[i].Measure(m)
}

// Trace calls the function call, which calls the tracer. A panic of the tracer is logged. After a panic, Tracer returns
// nil.
func (n *Reporter) Trace(call func()) {
	defer func() {
		if value := recover(); value != nil && !n.untraced.Swap(true) {
			guard.LogPanic(n.logger, n.consumer, "the tracer", value)
		}
	}()
	call()
}
