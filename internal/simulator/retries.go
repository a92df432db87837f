package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// retriesKnown is what the checker knows of the retries of all messages together:
// what their budget holds (C5), and how many attempts failed in a row (C6).
type retriesKnown struct {
	// saved is what the budget held at a moment; negative: what it lacked.
	saved, at time.Duration
	put       time.Duration // by how much it put off what was planned last

	// plain counts the attempts that failed since one succeeded, of those that surely
	// could have passed; charged counts all that a message was charged with.
	plain, charged int
	failedAt       time.Duration // the last of the plain ones
	succeeded      bool          // an effect was committed with the event
	on             bool          // one message is tried at a time
}

// refill adds what time and first attempts give.
func (c *checker) refill(share time.Duration) {
	r := &c.retries
	r.saved = min(r.saved+c.w.now-r.at+share, c.p.config.RetrySaved)
	r.at = c.w.now
}

// firstTry is called when a message's handler is to run for the first time.
func (c *checker) firstTry() { c.refill(c.p.config.RetryShare) }

// planned checks that a retry waits until the budget has room, and no longer.
func (c *checker) planned(wait time.Duration) {
	conf := c.p.config
	c.refill(0)
	r := &c.retries
	r.saved -= conf.RetryCost
	r.put = max(-r.saved, 0)
	if r.put > 0 {
		c.arose("C5, budget")
	}
	switch most := max(conf.MaxDelay, conf.MaxInMemoryWait+time.Second, r.put); {
	case wait < r.put:
		c.broke("C5, budget", "a retry begins in %v, and the budget has room in %v", wait, r.put)
	case wait > most:
		c.broke("C5, budget", "a retry begins in %v, and should in %v at most", wait, most)
	}
}

// handedBack is planned, of what is handed back because its handler failed.
func (c *checker) handedBack(s *machine.Settlement) {
	if s.Kind == semel.Nack && s.Charged && !s.Again {
		c.planned(s.After)
	}
}

// tryFailed is called when a message is charged with an attempt.
func (c *checker) tryFailed(f *flight) {
	r := &c.retries
	r.charged++
	if f.failed && f.failure.Class == store.ClassRetry && f.failure.Decision == semel.DecideRetry {
		r.plain++
		r.failedAt = c.w.now
	}
}

// succeeded is called when a flight is committed.
func (c *checker) succeeded(f *flight) {
	if f.done > 0 {
		c.retries.plain, c.retries.charged, c.retries.succeeded = 0, 0, true
		c.handlerWorks()
	}
}

func (c *checker) trialBegins(a machine.Report) {
	r := &c.retries
	c.prove(handOf(a.Item))
	most := r.charged
	for _, h := range c.hands {
		if h.suspicion.raised { // it may have been charged, and not be seen again
			most++
		}
	}
	if r.on || most < c.p.config.TrialAfter || c.p.config.OneAttempt {
		c.broke("C6", "one message is tried at a time after %d attempts that failed, %d are said; it is so already: %v", r.charged, a.N, r.on)
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

// checkTrial checks that many failures in a row let one message be tried at a time,
// and a success all.
func (c *checker) checkTrial() {
	r := &c.retries
	switch {
	case r.on && r.succeeded && r.charged == 0:
		c.broke("C6", "a message has succeeded, and one is still tried at a time")
	case !r.on && r.plain >= c.p.config.TrialAfter && !c.p.config.OneAttempt && !c.over:
		c.broke("C6", "%d attempts have failed one after the other, and all are tried", r.plain)
	}
	r.succeeded = false
}

// oneTry checks a flight that begins while one message is tried at a time.
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

// runs reports whether a flight is to run a handler.
func runs(f *machine.Flight) bool {
	for _, e := range f.Entries {
		if e.As == machine.AsApplied {
			return true
		}
	}
	return false
}
