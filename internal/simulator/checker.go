package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// checker watches one life of a machine. It knows what the machine was told
// and what is in the store, and nothing of the machine's inside.
type checker struct {
	p *process
	w *world

	lanes   map[machine.Lane]*laneState
	hands   []*handed
	arrival int

	fetching, sourceEnded bool
	stopping              bool
	stopAt                time.Duration
	over                  bool
	mustKill              *machine.Flight

	// begins counts transactions tried in an outage.
	begins   int
	outageAt time.Duration

	counts machine.Counts // what the settlements say
	gone   int            // lanes that went while something of them was in hand
}

// laneState is what the machine was told of an epoch of a lane.
type laneState struct {
	revoking, released, gone bool
}

// handState is what the checker knows of a delivery in a process's hands.
type handState struct {
	// stale: its lane is gone, so that nothing of it may be settled.
	stale bool
	// flight is the open flight it is in.
	flight *machine.Flight
	// asked: a Settle is under way; told: it was answered.
	asked, told bool
	// left: the last Settle was not carried out.
	left   bool
	ending machine.Ending
	// handled: its mark, or its effect without one, is in the store; applied:
	// with its handler's effect.
	handled, applied bool
	// copied: a dead letter of it was made, and the machine knows.
	copied bool
	// charged counts the failures of its handler.
	charged int
	// known: a committed flight found it to be a copy or a conflict.
	known bool
}

func (c *checker) broke(law, format string, args ...any) { c.w.broke(law, format, args...) }

func (c *checker) given(l machine.Lane) { c.lanes[l] = &laneState{} }

// lost is called before the machine is told that a lane is gone.
func (c *checker) lost(l machine.Lane) {
	if s := c.lanes[l]; s != nil {
		s.gone = true
	}
	for _, h := range c.hands {
		if h.item.Lane == l {
			h.stale = true
			c.gone++
		}
	}
}

// event is called before the machine is told.
func (c *checker) event(e machine.Event) {
	switch e := e.(type) {
	case machine.Fetched:
		c.fetched(e)
	case machine.Revoking:
		c.lanes[e.Lane].revoking = true
	case machine.Stop:
		c.stopping, c.stopAt = true, c.w.now
		c.p.later(c.p.config.Drain+time.Second, func() {
			c.broke("law 11", "a stop has not ended a second after its drain of %v", c.p.config.Drain)
		})
	case machine.Stuck:
		c.mustKill = e.Flight
	case machine.Marked:
		if e.Class != machine.None {
			c.leaveFlight(e.Flight)
		}
	case machine.Ran:
		c.charge(e)
	case machine.Ended:
		c.leaveFlight(e.Flight)
		if e.Outcome == machine.Committed {
			c.learned(c.p.last)
		}
	case machine.Settled:
		c.settled(e)
	}
}

func (c *checker) fetched(e machine.Fetched) {
	c.fetching = false
	c.sourceEnded = c.sourceEnded || e.End
	for _, i := range e.Items {
		h := handOf(i)
		c.arrival++
		h.arrival = c.arrival
		s := c.lanes[i.Lane]
		h.stale = s == nil || s.gone || s.released
		c.hands = append(c.hands, h)
	}
}

// charge counts the attempts of a message whose handler failed.
func (c *checker) charge(e machine.Ran) {
	blamed := e.Failed && !e.Whole && !e.Free && (e.Class == machine.Retry || e.Class == machine.Permanent)
	if !blamed {
		return
	}
	f := c.p.find(e.Flight)
	h := handOf(e.Flight.Entries[f.call.Fresh[e.Done]].Item)
	if h.charged++; h.charged > c.p.config.Attempts {
		c.broke("law 11", "%s has %d attempts; the most is %d", h.delivery.message.name(), h.charged, c.p.config.Attempts)
	}
}

// learned is called when the machine hears that a flight is committed.
func (c *checker) learned(f *flight) {
	for i, e := range f.of.Entries {
		h, v := handOf(e.Item), f.verdicts[i]
		again := v == machine.Conflict && c.p.config.OnConflict == machine.ThenDeadLetter && !h.copied
		if v != machine.Fresh && v != machine.Busy && !again {
			h.known = true
		}
	}
}

func (c *checker) leaveFlight(f *machine.Flight) {
	for _, e := range f.Entries {
		handOf(e.Item).flight = nil
	}
}

func (c *checker) settled(e machine.Settled) {
	for i, s := range e.Settle.Items {
		h := handOf(s.Item)
		h.asked, h.told, h.left = false, true, false
		for _, l := range e.Left {
			if l == i {
				h.told, h.left = false, true
			}
		}
		if s.Kind == machine.DeadLetter && h.told {
			h.told, h.copied = false, true
		}
	}
}

// after is called when what the machine answered was carried out.
func (c *checker) after(e machine.Event) {
	if c.mustKill != nil {
		if f := c.p.find(c.mustKill); f != nil && !f.killed {
			c.broke("law 11", "a stuck handler of f%d is not killed", f.of.Number)
		}
		c.mustKill = nil
	}
	if _, ok := e.(machine.Fetched); ok {
		c.forget()
	}
	c.checkCounts()
	c.checkLeaving()
}

// checkLeaving checks that what is to be left is left once nothing is under
// way.
func (c *checker) checkLeaving() {
	if c.over || c.p.over || len(c.p.flights) > 0 || c.p.settles > 0 || c.settlesFailed() {
		return
	}
	if c.stopping && c.p.fetch == nil {
		c.broke("case 10", "nothing is under way, and a stop has not ended")
	}
	for _, l := range c.w.source.lanes {
		if s := c.lanes[l.current()]; l.held && s != nil && s.revoking && !s.released {
			c.broke("case 10", "nothing is under way, and %s, which is revoked, is not released", l.id)
		}
	}
}

// settlesFailed reports whether a Settle waits to be tried again.
func (c *checker) settlesFailed() bool {
	return slices.ContainsFunc(c.hands, func(h *handed) bool { return h.left && !h.told })
}

// forget drops deliveries that are over, so that the list stays short.
func (c *checker) forget() {
	if len(c.hands) < 64 {
		return
	}
	kept := c.hands[:0]
	for _, h := range c.hands {
		if !h.told {
			kept = append(kept, h)
		}
	}
	c.hands = kept
}

// unsettled counts what the machine holds of lanes that it has.
func (c *checker) unsettled() (messages int, bytes int64) {
	for _, h := range c.hands {
		// What has not begun in a lane that is being left is dropped.
		leaving := c.stopping || !h.stale && c.lanes[h.item.Lane].revoking
		if !h.told && !h.stale && (!leaving || h.asked || h.flight != nil) {
			messages++
			bytes += int64(h.item.Size)
		}
	}
	return messages, bytes
}

// outage is called when the store goes away.
func (c *checker) outage() { c.begins, c.outageAt = 0, c.w.now }

// checkOutage bounds how often a store that is down is asked: a few times for
// each worker, and then as often as the backoff says.
func (c *checker) checkOutage() {
	if !c.w.store.down {
		return
	}
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

// checkCounts holds the machine's counts against what it said and did.
func (c *checker) checkCounts() {
	got, want := c.p.machine.Counts(), c.counts
	got.Retried, got.Rerun = 0, 0
	want.Deliveries = int64(c.arrival)
	// Who halts is known with Done only, and what ended in a lane that was
	// gone is not settled.
	want.Failed = got.Failed
	if c.gone > 0 && covers(got, want) {
		want = got
	}
	if got != want || ended(got) > got.Deliveries || got.Failed > 0 && !c.mayHalt() {
		c.broke("counts", "they are %+v and should be %+v", got, want)
	}
}

func (c *checker) mayHalt() bool {
	return machine.ThenHalt == c.p.config.RetryThen || machine.ThenHalt == c.p.config.OnConflict || machine.ThenHalt == c.p.config.OnRefused
}

// ended is the sum of what counts as an end.
func ended(c machine.Counts) int64 {
	return c.Applied + c.Duplicates + c.Conflicts + c.Parked + c.DeadLettered + c.Discarded + c.Failed
}

// covers reports whether no count of a is less than b's.
func covers(a, b machine.Counts) bool {
	return a.Deliveries == b.Deliveries && a.Applied >= b.Applied && a.Duplicates >= b.Duplicates && a.Conflicts >= b.Conflicts &&
		a.Parked >= b.Parked && a.DeadLettered >= b.DeadLettered && a.Discarded >= b.Discarded
}
