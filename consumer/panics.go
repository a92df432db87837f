package consumer

import (
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// A panic in a function of the user's that is not the handler must not end the
// process: the message that it met comes again, to the next one.

// flow pauses or resumes a lane. Where that panics the lane goes on delivering,
// within the bounds of what is unsettled.
func (e *engine[Tx]) flow(a machine.Flow) {
	_ = e.config.guard.Source("Flow", func() error { e.source.Flow(source.Lane(a.Lane), a.On); return nil })
}
