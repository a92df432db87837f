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

// line is what keeps an order: a lane, or a key.
type line struct {
	lane  source.Lane
	route uint64
}

// lineOf returns the line of an item; false: it has no order.
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

// inLine reports whether a delivery keeps those back that stand behind it in their
// lane, if they are of this route.
func (c *checker) inLine(before *model.Delivery, route uint64) bool {
	return c.p.config.Lanes == machine.Partition || before.Message.Route == route
}

// tries is what a message's handler did, as the checker counts it.
type tries struct {
	// attempts are those it is charged with.
	attempts int
	// alone: its next try has no company.
	alone bool
	// unwritten: the store refused what was to be written down of it, and no
	// handler of it ran.
	unwritten bool
	// waitsInInbox: it is to wait for longer than memory may hold it.
	waitsInInbox bool
	// doubt: a commit of unknown outcome may have marked it.
	doubt bool
	// stepInDoubt: with doubt: as a step of which another is left.
	stepInDoubt bool
	// mustTry: it failed for good while the breaker was open, and is to be tried again.
	mustTry bool
	// undone: its handler ran well and was rolled back with its flight; again:
	// its next run is another attempt.
	undone, again bool
	// ran: its handler began once.
	ran bool
	// worker is 1 more than the number of the worker that had it last, 0: none.
	worker int
	// expected is how it must end now that its flight has committed.
	expected source.End
}

// pause is what contention asks of a worker.
type pause struct {
	at   time.Duration // of the contention: the next flight begins later
	most int           // entries of the next flight, 0: any
}

// charge counts the attempt of a flight that is rolled back or refused, and
// finds whom the machine must blame: the one entry that can be named.
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
	h.alone, h.undone, h.again, h.unwritten = true, false, false, false
	if !slices.Contains(f.call.Fresh, culprit) {
		h.unwritten = true
		c.arose("C5")
		return
	}
	if c.p.config.Unmarked && f.failed && f.failure.Decision == semel.DecideDuplicate && h.stale {
		c.count(source.EndDuplicate) // without a marker it has ended, and its lane is gone
	}
	if f.failed && f.failure.Free {
		return
	}
	c.arose("C5")
	c.tryFailed(f)
	if h.attempts++; h.attempts > c.mostAttempts() && !c.p.config.OneAttempt && h.attempts > h.before()+1 {
		c.broke("law 11", "%s has %d attempts; the most is %d", h.delivery.Message.Name(), h.attempts, c.mostAttempts())
	}
	c.failedForGood(f, h)
}

// undone remembers which handlers ran for nothing.
func (c *checker) undone(f *flight) {
	for _, i := range f.call.Fresh[:f.done] {
		handOf(f.of.Entries[i].Item).undone = true
	}
}

// before are the attempts that a claimed row had.
func (h *handed) before() int {
	if h.claim == nil {
		return 0
	}
	return h.item.Claim.Attempts
}

// attemptsWith are the attempts of a row that is written with the end of an entry.
func (h *handed) attemptsWith(as machine.As) int {
	if as == machine.AsApplied {
		return h.attempts + 1
	}
	return h.attempts
}

// runs counts handlers that run again.
func (c *checker) runs(f *machine.Flight, fresh []int) {
	for _, i := range fresh {
		h := handOf(f.Entries[i].Item)
		if h.undone {
			c.counts.Rerun++
		}
		if h.again {
			c.counts.Retried++
		}
		if h.attempts == 0 && !h.ran {
			c.firstTry()
		}
		h.undone, h.again, h.ran, h.mustTry = false, false, true, false
		c.charged(h, f.Entries[i].Item.Attempt()-1)
	}
}

// culprit is the entry to blame, -1 if it is nobody's fault or not known whose.
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

// blamesAll reports whether one handler ran the whole batch and failed.
func (f *flight) blamesAll() bool { return f.failed && f.p.w.Plan.Whole }

// charged checks that what is told of a message's attempts is what it had.
func (c *checker) charged(h *handed, told int) {
	if told != h.attempts {
		c.broke("C5", "%s is said to have had %d attempts, and had %d", h.delivery.Message.Name(), told, h.attempts)
	}
}

// company checks that a message has its next try alone (case 1).
func (c *checker) company(f *machine.Flight, e machine.Entry, h *handed) {
	if !h.alone || e.As != machine.AsApplied {
		return
	}
	c.arose("case 1")
	if len(f.Entries) > 1 {
		c.broke("case 1", "%s has its next try beside %d others in f%d", h.delivery.Message.Name(), len(f.Entries)-1, f.Number)
	}
}

// contended is called when a flight ended through no message's fault.
func (c *checker) contended(f *machine.Flight, most int) {
	c.pauses[f.Worker] = pause{c.w.now, most}
}

// paused checks that a worker that met contention waits, and tries less at once
// (case 2).
func (c *checker) paused(f *machine.Flight) {
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

// keyed checks that messages of one key are never under way twice, where it is not
// their lane that has the order.
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

// suspicion is what the checker knows of a message that was alone when
// contention or the store ended its transaction (case 1). It is the machine's
// rule, kept by what the machine was told.
type suspicion struct {
	raised           bool
	commits, outages int
	proven, enough   int
}

// suspect is called when the machine hears how a flight ended.
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

// prove decides whether the last failure of h counts, once something of it is
// seen again.
func (c *checker) prove(h *handed) {
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
			c.retries.charged++
			c.breaker.perhaps++
			h.undone, h.again, h.unwritten = false, true, false
			c.arose("C5")
			c.w.coverage.Add("fault", "charged with what looked like the store's fault")
		}
	}
}

// proveBeforeRun checks that a message that is suspected runs only when it is
// known whether the store works otherwise.
func (c *checker) proveBeforeRun(a machine.Run) {
	for _, e := range a.Flight.Entries {
		if h := handOf(e.Item); h.suspicion.raised {
			c.broke("case 1", "%s runs again, and nobody asked whether the store works otherwise", h.delivery.Message.Name())
		}
	}
}
