package simulator

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// checker watches one life of a machine. checker knows the machine's events and the contents of the store,
// but no internal state of the machine.
type checker struct {
	p *process
	w *world

	lanes   map[source.Lane]*laneState
	hands   []*handed
	arrival int

	fetching, sourceEnded bool
	// sourceFails: the last Fetch failed.
	sourceFails bool
	asked       asked
	claims      claimsKnown
	stopping    bool
	stopAt      time.Duration
	over        bool
	mustKill    *machine.Flight

	// begins is the number of transactions that were tried in an outage.
	begins   int
	outageAt time.Duration
	askedAt  time.Duration // start of the last flight

	known   storeKnown
	retries retriesKnown
	breaker breakerKnown
	stuck   []*machine.Flight // flights whose handlers never return
	// metDown: the event belongs to a flight that found the store down.
	metDown bool
	pauses  map[int]pause               // by worker
	keys    map[uint64]*machine.Flight  // open flights by route
	counts  machine.Counts              // expected counts
	size    machine.Size                // after the last step
	held    int                         // after the last step
	told    [len(trace.ReportNames)]int // reports of the event
	// commits counts the committed transactions, outages those that could not be opened.
	commits, outages int
}

// laneState is what the machine knows of an epoch of a lane.
type laneState struct {
	revoking, released, gone bool
}

// handState is what the checker knows of a delivery that a process holds.
type handState struct {
	// stale: its lane is lost, so that it must not be settled.
	stale bool
	// in is the store that contains its committed end.
	in *model.Store
	// flight is the open flight that contains it.
	flight *machine.Flight
	// asked: a Settle is in progress; told: it was answered.
	asked, told bool
	// left: the last Settle was not carried out.
	left bool
	// handled: its mark, or its effect without a mark, is in the store; applied: the effect of its handler is in
	// the store.
	handled, applied bool
	// copying: its dead letter is being written; copied: it was written, and the machine knows.
	copying, copied bool
	// known: a committed flight found that it is a copy or a conflict; newer: the last flight found that a newer
	// release marked it.
	known, newer bool

	// conflicted: the row that may have been committed is the row of a conflict.
	conflicted bool

	tries
	turn
	suspicion suspicion
}

func (c *checker) broke(law, format string, args ...any) { c.w.broke(law, format, args...) }

func (c *checker) given(l source.Lane) { c.lanes[l] = &laneState{} }

// lost is called before the machine learns that a lane is lost.
func (c *checker) lost(l source.Lane) {
	if s := c.lanes[l]; s != nil {
		s.gone = true
	}
	for _, h := range c.hands {
		if h.item.Lane == l {
			c.part(h)
		}
	}
}

// part is called when the machine no longer holds a delivery that may be unsettled.
func (c *checker) part(h *handed) {
	if !h.stale && !h.told {
		c.w.store.Parted[identity(h.item)]++
	}
	h.stale = true
}

// partAll calls part for all deliveries at the end of the process.
func (c *checker) partAll() {
	for _, h := range c.hands {
		c.part(h)
	}
}

// event is called before the machine gets an event.
func (c *checker) event(e machine.Event) {
	c.metDown = false
	switch e := e.(type) {
	case machine.Fetched:
		c.fetched(e)
	case machine.Claimed:
		c.claimed(e)
	case machine.Due:
		c.claims.news++
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
		c.begun(e)
	case machine.Ended:
		c.leaveFlight(e.Flight)
		c.ended(e)
	case machine.Settled:
		c.settled(e)
	}
}

func (c *checker) fetched(e machine.Fetched) {
	c.fetching = false
	c.answered(e)
	c.sourceEnded = c.sourceEnded || e.End
	c.sourceFails = e.Failed || e.Unanswered && c.sourceFails
	for _, i := range e.Items {
		h := handOf(i)
		c.arrival++
		c.claims.delivered++
		h.arrival = c.arrival
		s := c.lanes[i.Lane]
		h.stale = s == nil || s.gone || s.released
		c.hands = append(c.hands, h)
	}
}

// begun is called before the machine gets the verdicts on a flight's marks.
func (c *checker) begun(e machine.Marked) {
	if e.Class == store.ClassNone {
		c.marked(e)
		if c.known.probe == e.Flight { // its transaction has opened
			c.known.probe, c.known.until = nil, c.w.now
		}
		return
	}
	c.leaveFlight(e.Flight)
	if e.Class == store.ClassDown {
		c.metDown = true
		c.outages++
	}
	if e.Class == store.ClassContended && !e.CopyBusy {
		c.contended(e.Flight, max(1, len(e.Flight.Entries)/4))
	}
}

// ended is called before the machine learns how a flight ended.
func (c *checker) ended(e machine.Ended) {
	f := c.p.last
	c.metDown = e.Class == store.ClassDown || f.failed && f.failure.Class == store.ClassDown
	c.suspect(f, e)
	if e.Outcome == store.Committed {
		c.commits++
		c.learned(f)
		c.succeeded(f)
		c.expect(f)
		if e.Freed {
			c.claims.news += 2
		}
		return
	}
	c.undone(f)
	switch {
	case e.Outcome == store.CommitUnknown:
		c.doubts(f)
		c.contended(e.Flight, max(1, len(e.Flight.Entries)/4))
	case f.contended(e):
		c.contended(e.Flight, max(1, len(e.Flight.Entries)/4))
	default:
		c.charge(f, e)
	}
}

// learned is called when the machine learns that a flight is committed.
func (c *checker) learned(f *flight) {
	for i, e := range f.of.Entries {
		h, v := handOf(e.Item), f.verdicts[i]
		h.newer = v.Kind == store.Newer
		if early(v) {
			c.outOfTurn(f, i)
			continue
		}
		if v.Kind == store.Conflict {
			h.suspicion = suspicion{} // the handler will not run again
			h.must = 0                // the conflict is how it ends
		}
		again := newConflict(v) && c.p.config.OnConflict == machine.EndDeadLetter && !h.copied
		if v.Kind != store.Fresh && v.Kind != store.Busy && v.Kind != store.Newer && v.Kind != store.ClaimLost && !again {
			h.known = true
		}
	}
}

func (c *checker) leaveFlight(f *machine.Flight) {
	for _, e := range f.Entries {
		handOf(e.Item).flight = nil
		if c.keys[e.Item.Route] == f {
			c.keys[e.Item.Route] = nil
		}
	}
	if c.known.probe == f {
		c.known.probe = nil
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
		if s.Kind == semel.DeadLetter && h.told {
			h.told, h.copied, h.copying = false, true, false
		}
	}
}

// after is called after the machine's actions were carried out.
func (c *checker) after(e machine.Event) {
	if c.mustKill != nil {
		if f := c.p.find(c.mustKill); f != nil && !f.killed {
			c.broke("law 11", "a stuck handler of f%d is not killed", f.of.Number)
		}
		c.mustKill = nil
	}
	switch e.(type) {
	case machine.Fetched, machine.Claimed:
		c.forget()
	}
	c.checkCounts()
	c.checkTrial()
	c.checkBreaker()
	c.checkHeld()
	c.checkSize(e)
	c.reports(e)
	c.checkLeaving()
	c.checkAsking()
	c.checkSkipped()
	c.sawOutage()
}

// forget removes deliveries that have ended, so that the list stays short.
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

// unsettled returns what the machine holds in lanes that it has.
func (c *checker) unsettled() (messages int, bytes int64) {
	for _, h := range c.hands {
		// Items of a revoked lane that are not in a flight are dropped.
		leaving := c.stopping || !h.stale && c.lanes[h.item.Lane].revoking
		if !h.told && !h.stale && (!leaving || h.asked || h.flight != nil) {
			messages++
			bytes += int64(h.item.Size)
		}
	}
	return messages, bytes
}

// checkCounts compares the machine's counts with its events and actions.
func (c *checker) checkCounts() {
	got, want := c.p.machine.Counts(), c.counts
	want.Deliveries = int64(c.claims.delivered)
	want.Failed = got.Failed // who halts is known with Done only
	if got != want || ended(got) > got.Deliveries || got.Failed > 0 && !c.mayHalt() {
		c.broke("counts", "they are %+v and should be %+v", got, want)
	}
}

func (c *checker) mayHalt() bool {
	return machine.EndHalt == c.p.config.OnExhausted || machine.EndHalt == c.p.config.OnConflict || machine.EndHalt == c.p.config.OnBadIdentity
}

// ended returns the number of ended deliveries.
func ended(c machine.Counts) int64 {
	return c.Applied + c.Duplicates + c.Conflicts + c.Parked + c.DeadLettered + c.Discarded + c.Skipped + c.Received + c.Waiting + c.Failed
}

func (c *checker) arose(law string) { c.w.arose(law) }
