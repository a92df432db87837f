package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// retriesKnown is what the checker knows about retries: the balance of the retry budget (C5), and the number of
// consecutive failed attempts (C6).
type retriesKnown struct {
	// balance is the balance of the budget at the time balanceTime. If balance is negative, the budget is overdrawn.
	balance, balanceTime time.Duration
	lastDelay            time.Duration // the delay of the last planned retry

	// failedAttempts is the number of failed attempts since the last success that certainly may be retried.
	// chargedFailures is the number of all failures since the last success that counted as attempts.
	failedAttempts, chargedFailures int
	failedAt                        time.Duration // time of the last failure that failedAttempts counts
	succeeded                       bool          // true if the current event committed an effect
	on                              bool          // true if only one message is tried at a time
}

// refill adds tokens to the retry budget: tokens for the time that has passed, and the amount in the parameter share.
// For a first attempt, share is machine.Config.RetryShare; in all other cases, share is 0.
func (c *checker) refill(share time.Duration) {
	r := &c.retries
	r.balance = min(r.balance+c.w.now-r.balanceTime+share, c.p.config.RetrySaved)
	r.balanceTime = c.w.now
}

// firstTry is called when the handler runs for a message for the first time.
func (c *checker) firstTry() { c.refill(c.p.config.RetryShare) }

// checkRetryDelay checks the delay of a retry: the retry must wait until the retry budget allows it, and no longer.
func (c *checker) checkRetryDelay(wait time.Duration) {
	conf := c.p.config
	c.refill(0)
	r := &c.retries
	r.balance -= conf.RetryCost
	r.lastDelay = max(-r.balance, 0)
	if r.lastDelay > 0 {
		c.arose("C5, budget")
	}
	switch most := max(conf.MaxDelay, conf.MaxInMemoryWait+time.Second, r.lastDelay); {
	case wait < r.lastDelay:
		c.broke("C5, budget", "a retry begins in %v, and the budget has room in %v", wait, r.lastDelay)
	case wait > most:
		c.broke("C5, budget", "a retry begins in %v, and should in %v at most", wait, most)
	}
}

// handedBack checks the delay of a message that is nacked because its handler failed.
func (c *checker) handedBack(s *machine.Settlement) {
	if s.Kind == semel.Nack && s.Charged && !s.Again {
		c.checkRetryDelay(s.After)
	}
}

// tryFailed is called when a failure counts as an attempt of a message.
func (c *checker) tryFailed(f *flight) {
	r := &c.retries
	r.chargedFailures++
	if f.failed && f.failure.Class == store.ClassRetry && f.failure.Decision == semel.DecideRetry {
		r.failedAttempts++
		r.failedAt = c.w.now
	}
}

// succeeded is called when a batch is committed.
func (c *checker) succeeded(f *flight) {
	if f.done > 0 {
		c.retries.failedAttempts, c.retries.chargedFailures, c.retries.succeeded = 0, 0, true
		c.handlerWorks()
	}
}

func (c *checker) trialBegins(a machine.Report) {
	r := &c.retries
	c.prove(handOf(a.Item))
	most := r.chargedFailures
	for _, h := range c.hands {
		if h.suspicion.raised { // the failure may count as an attempt of this message, which may not be delivered again
			most++
		}
	}
	if r.on || most < c.p.config.TrialAfter || c.p.config.OneAttempt {
		c.broke("C6", "one message is tried at a time after %d attempts that failed, %d are said; it is so already: %v", r.chargedFailures, a.N, r.on)
	}
	r.on = true
}

func (c *checker) trialEnds() {
	r := &c.retries
	if !r.on || !r.succeeded {
		c.broke("C6", "all are tried again, and none has succeeded (one at a time: %v)", r.on)
	}
	r.on = false
}

// checkTrial checks that the machine tries only one message at a time after many failures, and several at a time again
// after a success.
func (c *checker) checkTrial() {
	r := &c.retries
	switch {
	case r.on && r.succeeded && r.chargedFailures == 0:
		c.broke("C6", "a message has succeeded, and one is still tried at a time")
	case !r.on && r.failedAttempts >= c.p.config.TrialAfter && !c.p.config.OneAttempt && !c.over:
		c.broke("C6", "%d attempts have failed one after the other, and all are tried", r.failedAttempts)
	}
	r.succeeded = false
}

// oneTry checks a batch that begins while only one message is tried at a time.
func (c *checker) oneTry(f *machine.Flight) {
	law := "C6"
	switch {
	case !runs(f) || !c.retries.on && !c.breaker.open:
		return
	case !c.retries.on:
		law = "C19"
	}
	c.arose(law)
	if len(f.Entries) > 1 {
		c.broke(law, "f%d has %d entries, and one message is to be tried at a time", f.Number, len(f.Entries))
	}
	if next := c.retries.failedAt + c.p.config.RetryCost; c.retries.on && c.w.now < next {
		c.broke("C6", "f%d begins at %v, and the last try has failed at %v", f.Number, c.w.now, c.retries.failedAt)
	}
	if c.breaker.open && c.w.now < c.breaker.until {
		c.broke("C19", "f%d begins at %v, and the breaker is open until %v", f.Number, c.w.now, c.breaker.until)
	}
	for _, g := range c.p.flights {
		if !g.killed && runs(g.of) {
			c.broke(law, "f%d begins beside f%d, and one message is to be tried at a time", f.Number, g.of.Number)
		}
	}
}

// runs reports whether a batch will run a handler.
func runs(f *machine.Flight) bool {
	for _, e := range f.Entries {
		if e.As == machine.AsApplied {
			return true
		}
	}
	return false
}

// breakerKnown is what the checker knows about the circuit breaker (C19).
type breakerKnown struct {
	open  bool
	until time.Duration // time of the next attempt
	// permanentFailures is the number of consecutive messages that failed permanently. possibleFailures also counts
	// messages that may have failed permanently, for example with their last attempt.
	permanentFailures, possibleFailures int
	succeeded                           bool // true if a handler has succeeded in this process
	worked                              bool // true if a handler has succeeded in the current event
}

// mostAttempts returns the largest number of attempts for a message.
func (c *checker) mostAttempts() int {
	if c.p.config.BreakerThreshold > 0 {
		return max(c.p.config.MaxAttempts, 5)
	}
	return c.p.config.MaxAttempts
}

// failedForGood is called when a failure counts as an attempt of a message, and checks whether the message failed
// permanently.
func (c *checker) failedForGood(f *flight, h *itemState) {
	b, conf := &c.breaker, c.p.config
	b.possibleFailures++
	if !f.failed {
		return
	}
	switch d := f.failure.Decision; {
	case d == semel.DecideDiscard, d == semel.DecideDuplicate:
		c.handlerWorks()
	case d == semel.DecidePermanent, d == semel.DecidePreconditionFailed && conf.OnPrecondition != machine.EndDiscard && conf.OnPrecondition != machine.EndRetry:
		b.permanentFailures++
		h.mustTry = b.open && h.attempts < c.mostAttempts()
	}
}

// handlerWorks is called when an effect is committed, or when a handler returns a decision on purpose.
func (c *checker) handlerWorks() {
	b := &c.breaker
	b.permanentFailures, b.possibleFailures, b.succeeded, b.worked = 0, 0, true, true
}

// breakerSaid checks the machine's reports about the breaker.
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
		perhaps := b.possibleFailures
		for _, h := range c.hands {
			if h.suspicion.raised { // the failure may count as an attempt of this message, which may not be delivered again
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

// checkBreaker checks that many consecutive permanent failures open the breaker, and that a success closes it.
func (c *checker) checkBreaker() {
	b, conf := &c.breaker, c.p.config
	switch {
	case b.open && b.worked && b.possibleFailures == 0:
		c.broke("C19", "a handler has worked, and the breaker is still open")
	case !b.open && conf.BreakerThreshold > 0 && b.permanentFailures >= conf.BreakerThreshold && (!b.succeeded || conf.HaltLater) && !conf.OneAttempt && !c.over:
		c.broke("C19", "%d messages have failed for good one after the other, and the breaker is closed", b.permanentFailures)
	}
	b.worked = false
}

// takesInBreak checks that the machine takes only one message, as a test, while the breaker is open.
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

// storeKnown is what the machine has reported about an outage of the store.
type storeKnown struct {
	down  bool
	until time.Duration   // time of the next attempt
	probe *machine.Flight // the batch with which the machine tests the store
	// room is true if there was free memory for more messages during the outage.
	room bool
}

// outage is called when the store goes down.
func (c *checker) outage() { c.begins, c.outageAt = 0, c.w.now }

// checkOutage checks how often the machine tries a store that is down: a few times for each worker, and then
// with growing delays.
func (c *checker) checkOutage(f *machine.Flight) {
	c.askedAt = c.w.now
	if c.rests() {
		c.broke("law 13", "f%d begins while the machine waits for the store", f.Number)
	}
	if c.known.down {
		c.known.probe = f
	}
	if !c.w.store.Down {
		return
	}
	c.arose("law 13")
	c.begins++
	conf := c.p.config
	most := 4*conf.Workers + 20
	for wait := conf.BackoffFirst; wait < conf.BackoffMost; wait *= 2 {
		most += 4
	}
	most += int(8 * (c.w.now - c.outageAt) / conf.BackoffMost)
	if c.begins > most {
		c.broke("law 13", "the store was asked %d times in an outage of %v", c.begins, c.w.now-c.outageAt)
	}
}

// readiness checks the machine's reports whether the store works.
func (c *checker) readiness(a machine.Report) {
	switch {
	case a.Part != "store":
	case a.Kind == machine.ReportReady:
		c.known = storeKnown{}
	default:
		if !c.metDown {
			c.broke("reports", "the store is said not to work, and nothing has met that it does not")
		}
		c.known = storeKnown{down: true, until: c.w.now + a.Wait, probe: c.known.probe}
	}
}

// rests reports whether the machine waits during an outage: for the next test of the store, or for the result
// of a test.
func (c *checker) rests() bool {
	return c.known.down && (c.known.probe != nil || c.w.now < c.known.until)
}

// fetchesInOutage checks that the machine fetches no message that would have to wait for the store (law 13). With
// OneAttempt, messages do not wait: the machine nacks messages that would have to wait, and these messages stay in the
// broker.
func (c *checker) fetchesInOutage(a machine.Fetch) {
	if c.rests() && !c.p.config.OneAttempt {
		c.broke("law 13", "%s while the store is down", trace.Action(a))
	}
}

// sawOutage counts how often fetching must pause although there is free memory.
func (c *checker) sawOutage() {
	if !c.rests() || c.known.room || c.p.config.OneAttempt || c.fetching {
		return
	}
	if messages, _ := c.unsettled(); messages < c.p.config.MaxMessages {
		c.known.room = true
		c.w.coverage.Add("fault", "store down, and room to fetch")
	}
}
