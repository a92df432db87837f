package consumer

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// A panic in a function of the user's that is not the handler must not end the
// process: the message that it met comes again, to the next one.

// logPanic logs a panic with its stack, and without what a payload may have put
// into its value.
func logPanic(logger *slog.Logger, consumer, where string, value any) {
	logger.Error(where+" panicked; this is a fault of the program", "consumer", consumer, "panic", legible.Panic(value), "stack", string(debug.Stack()))
}

// notPrinting is deferred by who makes a fingerprint. A Fingerprinter that panics
// cannot read the message, which is set aside.
func notPrinting(c *settings, f *semel.Fingerprint, err *error) {
	if value := recover(); value != nil {
		logPanic(c.Logger, c.Name, "the fingerprinter", value)
		*f, *err = semel.Fingerprint{}, fmt.Errorf("the fingerprinter panicked: %s", legible.Panic(value))
	}
}

// notPanicking runs a call of the source's and turns its panic into an error.
func notPanicking(c *settings, what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			logPanic(c.Logger, c.Name, "the source's "+what, value)
			err = fmt.Errorf("the source's %s panicked: %s", what, legible.Panic(value))
		}
	}()
	return legible.Error(call(), decidedAgain)
}

// flow pauses or resumes a lane. Where that panics the lane goes on delivering,
// within the bounds of what is unsettled.
func (e *engine[Tx]) flow(a machine.Flow) {
	_ = notPanicking(e.config, "Flow", func() error { e.source.Flow(source.Lane(a.Lane), a.On); return nil })
}

// at tells a test where the engine is.
func (c *settings) at(p faults.Point, n int) {
	if c.plan.At == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			logPanic(c.Logger, c.Name, "faults.Plan.At", value)
		}
	}()
	c.plan.At(p, n)
}

// observe tells one observer. One that panics is logged once, and the event goes
// on to the others.
func (n *reporter) observe(i int, e semel.Event) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		n.mutex.Lock()
		first := !n.panicked[i]
		if n.panicked == nil {
			n.panicked = map[int]bool{}
		}
		n.panicked[i] = true
		n.mutex.Unlock()
		if first {
			logPanic(n.logger, n.consumer, fmt.Sprintf("observer %d of %d (a %T)", i+1, len(n.observers), n.observers[i]), value)
		}
	}()
	n.observers[i].Observe(e)
}
