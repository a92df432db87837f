package simulator

import (
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

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
