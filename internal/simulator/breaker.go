package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// breakerKnown is what the checker knows of the circuit breaker (C19).
type breakerKnown struct {
	open  bool
	until time.Duration // nothing is tried before
	// surely are the messages in a row that failed for good, perhaps those that may have,
	// as by their last attempt.
	surely, perhaps int
	succeeded       bool // a handler has worked since the life's start
	worked          bool // it did so with this event
}

// mostAttempts is how many attempts a message has at most.
func (c *checker) mostAttempts() int {
	if c.p.config.BreakerThreshold > 0 {
		return max(c.p.config.MaxAttempts, 5)
	}
	return c.p.config.MaxAttempts
}

// failedForGood is called when a message is charged with an attempt.
func (c *checker) failedForGood(f *flight, h *handed) {
	b, conf := &c.breaker, c.p.config
	b.perhaps++
	if !f.failed {
		return
	}
	switch d := f.failure.Decision; {
	case d == semel.DecideDiscard, d == semel.DecideDuplicate:
		c.handlerWorks()
	case d == semel.DecidePermanent, d == semel.DecidePreconditionFailed && conf.OnPrecondition != machine.EndDiscard && conf.OnPrecondition != machine.EndRetry:
		b.surely++
		h.mustTry = b.open && h.attempts < c.mostAttempts()
	}
}

// handlerWorks is called when an effect is committed, or a handler decides on purpose.
func (c *checker) handlerWorks() {
	b := &c.breaker
	b.surely, b.perhaps, b.succeeded, b.worked = 0, 0, true, true
}

// breakerSaid hears what observers are told of it.
func (c *checker) breakerSaid(a machine.Report) {
	b, conf := &c.breaker, c.p.config
	switch {
	case a.Kind == machine.ReportReady && (!b.open || !b.worked):
		c.broke("C19", "the breaker closes, and no handler has worked (open: %v)", b.open)
	case a.Kind == machine.ReportReady:
		b.open = false
		c.w.coverage.Add("fault", "the breaker closes")
	default:
		c.prove(handOf(a.Item))
		perhaps := b.perhaps
		for _, h := range c.hands {
			if h.suspicion.raised { // it may have been charged, and not be seen again
				perhaps++
			}
		}
		if conf.BreakerThreshold == 0 || conf.OneAttempt || perhaps < conf.BreakerThreshold && !b.open || b.succeeded && !conf.HaltLater {
			c.broke("C19", "the breaker is open after %d failures, and %d are said (a handler has worked before: %v)", perhaps, a.N, b.succeeded)
		}
		if !b.open {
			c.w.coverage.Add("fault", "the breaker opens")
		}
		b.open, b.until = true, c.w.now+a.Wait
	}
}

// checkBreaker checks that many failures for good in a row open the breaker, and that a
// success closes it.
func (c *checker) checkBreaker() {
	b, conf := &c.breaker, c.p.config
	switch {
	case b.open && b.worked && b.perhaps == 0:
		c.broke("C19", "a handler has worked, and the breaker is still open")
	case !b.open && conf.BreakerThreshold > 0 && b.surely >= conf.BreakerThreshold && (!b.succeeded || conf.HaltLater) && !conf.OneAttempt && !c.over:
		c.broke("C19", "%d messages have failed for good one after the other, and the breaker is closed", b.surely)
	}
	b.worked = false
}

// takesInBreak checks what is taken while the breaker is open: one to be tried.
func (c *checker) takesInBreak(messages int, what machine.Action) {
	b := &c.breaker
	if !b.open {
		return
	}
	c.arose("C19")
	if messages > 1 || c.w.now < b.until {
		c.broke("C19", "%s at %v, and the breaker is open until %v", trace.Action(what), c.w.now, b.until)
	}
}
