package consumer

import (
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/report"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// A panic in a function of the user's that is not the handler must not end the
// process: the message that it met comes again, to the next one.

// notPrinting is deferred by who makes a fingerprint. A Fingerprinter that panics
// cannot read the message, which is set aside.
func notPrinting(c *settings, f *semel.Fingerprint, err *error) {
	if value := recover(); value != nil {
		report.LogPanic(c.Logger, c.Name, "the fingerprinter", value)
		*f, *err = semel.Fingerprint{}, fmt.Errorf("the fingerprinter panicked: %s", legible.Panic(value))
	}
}

// notPanicking runs a call of the source's and turns its panic into an error.
func notPanicking(c *settings, what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			report.LogPanic(c.Logger, c.Name, "the source's "+what, value)
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
			report.LogPanic(c.Logger, c.Name, "faults.Plan.At", value)
		}
	}()
	c.plan.At(p, n)
}
