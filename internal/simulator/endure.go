package simulator

import (
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/machine"
)

// long is how long a store stays away that does not come back.
const long = 2 * time.Minute

// endure comes between the faults and the calm: the world stays with what has no
// end, a store that is away or a handler that does not return. What does not
// depend on it must go on, and then a stop must end the machine all the same.
func (w *world) endure() {
	w.quiet = true
	w.armed = crash{}
	for seat, p := range w.seats {
		if p != nil {
			p.thaw()
		}
		w.begin(seat)
	}
	for _, l := range w.source.lanes {
		w.give(l)
	}
	switch {
	case w.plan.away:
		w.fault("store away without end", "")
		w.takeStore()
		if w.plan.config.OneAttempt { // all is handed back, and comes again at its broker's pace
			w.mostSteps *= 20
		}
		w.after(long, w.endEndurance)
	case w.stuckForGood() > 0:
		if w.plan.config.Inbox { // what the stuck worker should have is claimed and given back all the time
			w.mostSteps *= 20
		}
		w.after(w.patience(), w.endEndurance)
	default:
		w.beCalm()
	}
}

// endEndurance looks what has become of the others, and stops everybody.
func (w *world) endEndurance() {
	for _, p := range w.living() {
		if w.plan.away {
			p.check.asksOn()
		}
		p.check.othersWentOn()
		if !p.check.stopping {
			p.feed(machine.Stop{})
		}
	}
	w.after(w.plan.config.Drain+2*time.Second, w.beCalm)
}

// stuckForGood counts handlers that never return.
func (w *world) stuckForGood() (n int) {
	for _, p := range w.living() {
		n += len(p.check.stuck)
	}
	return n
}

// stuckFlight is a flight whose handler never returns.
type stuckFlight struct {
	flight *machine.Flight
	// lanes are those that may be its worker's.
	lanes map[contract.Lane]bool
}

// sticks is called when a handler will never return. A lane is known to be
// another worker's if something of it was with that worker and is still there.
func (c *checker) sticks(f *machine.Flight) {
	s := stuckFlight{flight: f, lanes: map[contract.Lane]bool{}}
	for _, h := range c.hands {
		if c.alive(h) && h.worker == 0 {
			s.lanes[h.item.Lane] = true
		}
	}
	for _, h := range c.hands {
		if c.alive(h) && h.worker != 0 {
			s.lanes[h.item.Lane] = h.worker == f.Worker+1
		}
	}
	for _, e := range f.Entries {
		s.lanes[e.Item.Lane] = true
	}
	c.stuck = append(c.stuck, s)
}

// sawStuck remembers a moment in which every worker is stuck: a lane that comes then
// is given to one of them, and stays there.
func (c *checker) sawStuck() {
	n := 0
	for _, f := range c.p.flights {
		if f.stuck {
			n++
		}
	}
	c.allStuck = c.allStuck || n == c.p.config.Workers
}

// alive reports whether the machine must still do something for a delivery.
func (c *checker) alive(h *handed) bool { return !h.told && !h.stale }

// othersWentOn checks that what does not depend on a stuck handler came to its
// end (laws 7 and 8).
func (c *checker) othersWentOn() {
	workers := c.stuckWorkers()
	if len(workers) == 0 || c.allStuck || c.stopping || c.w.plan.away {
		return
	}
	waits := c.waitForStuck()
	for _, h := range c.hands {
		if !c.alive(h) || waits[h] {
			continue
		}
		c.broke("law 8", "%s of another lane has not ended while f%d is stuck", h.delivery.message.name(), c.stuck[0].flight.Number)
		return
	}
	c.w.coverage.add("fault", "others go on beside a stuck handler")
}

// stuckWorkers are those whose handlers never return.
func (c *checker) stuckWorkers() map[int]bool {
	workers := map[int]bool{}
	for _, s := range c.stuck {
		workers[s.flight.Worker] = true
	}
	return workers
}

// waitForStuck finds the deliveries that wait for a stuck handler: in its
// flight, in its worker's lanes, as copies of those, and in the lanes of copies.
func (c *checker) waitForStuck() map[*handed]bool {
	lanes, ids, waits := map[contract.Lane]bool{}, map[string]bool{}, map[*handed]bool{}
	workers := c.stuckWorkers()
	for _, s := range c.stuck {
		for l, its := range s.lanes {
			lanes[l] = lanes[l] || its
		}
		for _, e := range s.flight.Entries {
			ids[identity(e.Item)] = true
		}
	}
	for more := true; more; {
		more = false
		for _, h := range c.hands {
			ordered := c.p.config.Lanes == machine.Partition && h.claim == nil
			worker := int(h.item.Route % uint64(c.p.config.Workers))
			if waits[h] || !c.alive(h) || !(ordered && lanes[h.item.Lane] || !ordered && workers[worker] || ids[h.delivery.message.id]) {
				continue
			}
			waits[h], lanes[h.item.Lane], ids[h.delivery.message.id], more = true, true, true, true
		}
	}
	return waits
}

// asksOn checks that a store that is away is still asked, as long as something
// waits for it, and that observers know (law 13).
func (c *checker) asksOn() {
	conf := c.p.config
	if c.stopping || len(c.stuckWorkers()) == conf.Workers { // nobody is left to ask
		return
	}
	waiting, stuck := false, c.waitForStuck()
	for _, h := range c.hands {
		waiting = waiting || c.alive(h) && !stuck[h] && !h.asked && h.flight == nil
	}
	patience := 2*conf.BackoffMost + conf.Hold + 10*c.w.plan.lag
	switch {
	case !waiting:
	case c.w.now-c.askedAt > patience:
		c.broke("law 13", "the store has not been asked for %v, and a message waits for it", c.w.now-c.askedAt)
	case !c.known.down:
		c.broke("law 13", "the store is away, and nobody was told")
	default:
		c.w.coverage.add("fault", "a store away without end is asked on")
	}
}
