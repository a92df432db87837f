package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// line identifies messages that are processed in order: all messages of a lane, or of a key.
type line struct {
	lane  source.Lane
	route uint64
}

// lineOf returns the line (the lane or key whose messages are processed in order) of an item. The bool is false if the
// item belongs to no ordered lane or key.
func (c *checker) lineOf(it *machine.Item) (line, bool) {
	switch {
	case it.Claim != nil:
	case c.p.config.Lanes == machine.Partition:
		return line{lane: it.Lane}, true
	case c.p.config.Lanes == machine.Key:
		return line{route: it.Route}, true
	}
	return line{}, false
}

// inLine reports whether a delivery blocks later deliveries of its lane that have the given route (hash of the key).
func (c *checker) inLine(before *model.Delivery, route uint64) bool {
	return c.p.config.Lanes == machine.Partition || before.Message.Route == route
}

// tries is what the checker knows about the attempts of a message.
type tries struct {
	// attempts is the number of failures that counted as attempts.
	attempts int
	// runAlone is true if the next batch of the message must contain no other message.
	runAlone bool
	// unwritten is true if the store rejected the row of the message, and the handler of the message did not run.
	unwritten bool
	// waitsInInbox is true if the delay of the message is too long to wait in memory.
	waitsInInbox bool
	// doubt is true if a commit with an unknown outcome may have written the marker.
	doubt bool
	// stepInDoubt is true if the commit with an unknown outcome ended a step that is not the last step.
	stepInDoubt bool
	// mustTry is true if the message must be tried again, because it failed permanently while the breaker was open.
	mustTry bool
	// rolledBack is true if the handler succeeded and was rolled back with its batch. nextRunCounts is true if
	// the next run counts as another attempt.
	rolledBack, nextRunCounts bool
	// ran is true if the handler has started at least once.
	ran bool
	// worker is the number of the last worker plus 1, or 0 if no worker had the message.
	worker int
	// expected is how the message must end after the commit of its batch.
	expected source.End
}

// pause is the delay of a worker after lock contention.
type pause struct {
	at   time.Duration // time of the contention; the next batch must begin later
	most int           // largest number of entries in the next batch; 0 means no limit
}

// charge counts a failure of a batch that was rolled back or rejected. The failure counts as an attempt of one message:
// the message of the only entry that can have caused the failure.
func (c *checker) charge(f *flight, e machine.Ended) {
	if e.Outcome != store.NotCommitted {
		return
	}
	culprit := f.culprit(e)
	if culprit < 0 {
		return
	}
	h := handOf(f.of.Entries[culprit].Item)
	if len(f.of.Entries) > 1 {
		c.arose("law 7")
	}
	h.runAlone, h.rolledBack, h.nextRunCounts, h.unwritten = true, false, false, false
	if !slices.Contains(f.call.Fresh, culprit) {
		h.unwritten = true
		c.arose("C5")
		return
	}
	if c.p.config.Unmarked && f.failed && f.failure.Decision == semel.DecideDuplicate && h.stale {
		c.count(source.EndDuplicate) // without markers the message has ended, and its lane is lost
	}
	if f.failed && f.failure.Free {
		return
	}
	c.arose("C5")
	c.tryFailed(f)
	if h.attempts++; h.attempts > c.mostAttempts() && !c.p.config.OneAttempt && h.attempts > h.attemptsBeforeClaim()+1 {
		c.broke("law 11", "%s has %d attempts; the most is %d", h.delivery.Message.Name(), h.attempts, c.mostAttempts())
	}
	c.failedForGood(f, h)
}

// recordRollback records which handlers succeeded and were rolled back.
func (c *checker) recordRollback(f *flight) {
	for _, i := range f.call.Fresh[:f.done] {
		handOf(f.of.Entries[i].Item).rolledBack = true
	}
}

// attemptsBeforeClaim returns the number of attempts that a claimed row had before the process claimed it.
func (h *itemState) attemptsBeforeClaim() int {
	if h.claim == nil {
		return 0
	}
	return h.item.Claim.Attempts
}

// attemptsWith returns the number of attempts that the row must have when the entry ends. The parameter as is the
// outcome of the entry.
func (h *itemState) attemptsWith(as machine.As) int {
	if as == machine.AsApplied {
		return h.attempts + 1
	}
	return h.attempts
}

// runs counts the handlers that run again.
func (c *checker) runs(f *machine.Flight, fresh []int) {
	for _, i := range fresh {
		h := handOf(f.Entries[i].Item)
		if h.rolledBack {
			c.counts.Rerun++
		}
		if h.nextRunCounts {
			c.counts.Retried++
		}
		if h.attempts == 0 && !h.ran {
			c.firstTry()
		}
		h.rolledBack, h.nextRunCounts, h.ran, h.mustTry = false, false, true, false
		c.checkAttempts(h, f.Entries[i].Item.Attempt()-1)
	}
}

// culprit returns the index of the entry that caused the failure of the batch. If no entry caused the failure, or if
// the entry is unknown, culprit returns -1.
func (f *flight) culprit(e machine.Ended) int {
	class := e.Class
	if f.failed {
		class = f.failure.Class
	}
	switch {
	case class == store.ClassContended || class == store.ClassDown || class == store.ClassClaimLost:
		return -1
	case !f.failed && len(f.of.Entries) == 1:
		return 0
	case !f.failed:
		return e.Culprit
	case f.blamesAll() && len(f.call.Fresh) == 1, class == store.ClassAborted && !f.blamesAll() && f.done == 0:
		return f.call.Fresh[0]
	case f.blamesAll() || class == store.ClassAborted:
		return -1
	}
	return f.call.Fresh[f.done]
}

// blamesAll reports whether a handler of the whole batch failed.
func (f *flight) blamesAll() bool { return f.failed && f.p.w.Plan.Whole }

// checkAttempts checks that the reported number of attempts is right.
func (c *checker) checkAttempts(h *itemState, told int) {
	if told != h.attempts {
		c.broke("C5", "%s is said to have had %d attempts, and had %d", h.delivery.Message.Name(), told, h.attempts)
	}
}

// company checks that a message that must have a batch of its own has one (case 1).
func (c *checker) company(f *machine.Flight, e machine.Entry, h *itemState) {
	if !h.runAlone || e.As != machine.AsApplied {
		return
	}
	c.arose("case 1")
	if len(f.Entries) > 1 {
		c.broke("case 1", "%s has its next try beside %d others in f%d", h.delivery.Message.Name(), len(f.Entries)-1, f.Number)
	}
}

// contended is called when a batch ended without an entry that caused the failure.
func (c *checker) contended(f *machine.Flight, most int) {
	c.pauses[f.Worker] = pause{c.w.now, most}
}

// checkBackoff checks that a worker waits after lock contention, and then tries fewer entries at once (case 2).
func (c *checker) checkBackoff(f *machine.Flight) {
	p, there := c.pauses[f.Worker]
	if !there {
		return
	}
	delete(c.pauses, f.Worker)
	c.arose("case 2")
	switch {
	case c.w.now <= p.at:
		c.broke("case 2", "f%d begins at the moment in which its worker met contention", f.Number)
	case p.most > 0 && len(f.Entries) > p.most:
		c.broke("case 2", "f%d has %d entries, and a quarter of those that met contention are %d", f.Number, len(f.Entries), p.most)
	}
}

// keyed checks that two open batches never contain messages of one key, unless the whole lane is processed in
// order.
func (c *checker) keyed(f *machine.Flight) {
	if c.p.config.Lanes == machine.Partition {
		return
	}
	for _, e := range f.Entries {
		if e.Item.Claim != nil {
			continue
		}
		other, met := c.keys[e.Item.Route]
		if met && c.p.config.Workers > 1 {
			c.arose("C8")
		}
		if other != nil && other != f {
			c.broke("C8", "f%d of worker %d and f%d of worker %d have messages of one key", other.Number, other.Worker, f.Number, f.Worker)
		}
		c.keys[e.Item.Route] = f
	}
}

// suspicion is what the checker knows about a message that was alone in a batch when lock contention, or the
// store, ended the transaction (case 1). The checker computes it from the events, with the same rule as the
// machine.
type suspicion struct {
	raised           bool
	commits, outages int
	proven, enough   int
}

// suspect is called when the machine gets the event Ended, which says how a batch ended.
func (c *checker) suspect(f *flight, e machine.Ended) {
	class, enough, outside := e.Class, 2, e.Outside
	switch {
	case f.failed:
		class, outside = f.failure.Class, f.failure.Outside
	case e.Culprit < 0:
		enough = 5
	}
	looks := class == store.ClassContended || class == store.ClassDown
	if e.Outcome != store.NotCommitted || len(e.Flight.Entries) != 1 || len(f.call.Fresh) == 0 || !looks {
		return
	}
	if outside {
		c.w.coverage.Add("fault", "exonerated alone")
		return
	}
	s := &handOf(e.Flight.Entries[0].Item).suspicion
	s.raised, s.enough, s.commits, s.outages = true, enough, c.commits, c.outages
}

// prove decides whether the last failure of h counts as an attempt. The checker calls prove when the item occurs in an
// action again.
func (c *checker) prove(h *itemState) {
	s := &h.suspicion
	switch {
	case !s.raised:
	case s.outages != c.outages:
		*s = suspicion{}
	case s.commits != c.commits:
		s.raised = false
		if s.proven++; s.proven >= s.enough {
			h.delivery.Message.Charged++
			h.attempts++
			c.retries.chargedFailures++
			c.breaker.possibleFailures++
			h.rolledBack, h.nextRunCounts, h.unwritten = false, true, false
			c.arose("C5")
			c.w.coverage.Add("fault", "charged with what looked like the store's fault")
		}
	}
}

// proveBeforeRun checks that a suspected message runs again only after it is known whether the store works for
// other messages.
func (c *checker) proveBeforeRun(a machine.Run) {
	for _, e := range a.Flight.Entries {
		if h := handOf(e.Item); h.suspicion.raised {
			c.broke("case 1", "%s runs again, and nobody asked whether the store works otherwise", h.delivery.Message.Name())
		}
	}
}
