package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// storeKnown is what the machine has said of a store that does not work.
type storeKnown struct {
	down  bool
	until time.Duration   // it asks no earlier
	probe *machine.Flight // asks whether it is back
	// room: something could have been fetched meanwhile.
	room bool
}

// outage is called when the store goes away.
func (c *checker) outage() { c.begins, c.outageAt = 0, c.w.now }

// checkOutage bounds how often a store that is down is asked: a few times for
// each worker, and then as often as the backoff says.
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

// readiness hears what observers are told of the store.
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

// rests reports whether the machine waits for a store that is down, or for the
// answer of the one flight that asks.
func (c *checker) rests() bool {
	return c.known.down && (c.known.probe != nil || c.w.now < c.known.until)
}

// fetchesInOutage checks that nothing is fetched that would have to wait for a
// store (law 13). Where nothing waits, the broker keeps what is handed back.
func (c *checker) fetchesInOutage(a machine.Fetch) {
	if c.rests() && !c.p.config.OneAttempt {
		c.broke("law 13", "%s while the store is down", trace.Action(a))
	}
}

// sawOutage counts moments in which fetching has to rest although there is room.
func (c *checker) sawOutage() {
	if !c.rests() || c.known.room || c.p.config.OneAttempt || c.fetching {
		return
	}
	if messages, _ := c.unsettled(); messages < c.p.config.MaxMessages {
		c.known.room = true
		c.w.coverage.Add("fault", "store down, and room to fetch")
	}
}
