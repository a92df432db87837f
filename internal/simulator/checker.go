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

// checker watches one life of a machine. It knows what the machine was told
// and what is in the store, and nothing of the machine's inside.
type checker struct {
	p *process
	w *world

	lanes   map[source.Lane]*laneState
	hands   []*handed
	arrival int

	fetching, sourceEnded bool
	// sourceFails: the last answer of the source was that it fails.
	sourceFails bool
	asked       asked
	claims      claimsKnown
	stopping    bool
	stopAt      time.Duration
	over        bool
	mustKill    *machine.Flight

	// begins counts transactions tried in an outage.
	begins   int
	outageAt time.Duration
	askedAt  time.Duration // when a flight began last

	known   storeKnown
	retries retriesKnown
	breaker breakerKnown
	stuck   []*machine.Flight // whose handlers never return
	// metDown: the event is of a flight that met a store that does not work.
	metDown bool
	pauses  map[int]pause               // by worker
	keys    map[uint64]*machine.Flight  // by route, of those that have begun
	counts  machine.Counts              // what they must be
	size    machine.Size                // after the last step
	held    int                         // after the last step
	told    [len(trace.ReportNames)]int // reports of the event
	// commits counts the transactions that committed, outages those that the
	// store did not open.
	commits, outages int
}

// laneState is what the machine was told of an epoch of a lane.
type laneState struct {
	revoking, released, gone bool
}

// handState is what the checker knows of a delivery in a process's hands.
type handState struct {
	// stale: its lane is gone, so that nothing of it may be settled.
	stale bool
	// in is the store in which its end was committed.
	in *model.Store
	// flight is the open flight it is in.
	flight *machine.Flight
	// asked: a Settle is under way; told: it was answered.
	asked, told bool
	// left: the last Settle was not carried out.
	left bool
	// handled: its mark, or its effect without one, is in the store; applied:
	// with its handler's effect.
	handled, applied bool
	// copying: a dead letter of it is being made; copied: it was made, and the machine
	// knows.
	copying, copied bool
	// known: a committed flight found it to be a copy or a conflict; newer: the
	// last one found that a newer release marked it.
	known, newer bool

	// conflicted: what may have been committed is the row of a conflict.
	conflicted bool

	tries
	turn
	suspicion suspicion
}

func (c *checker) broke(law, format string, args ...any) { c.w.broke(law, format, args...) }

func (c *checker) given(l source.Lane) { c.lanes[l] = &laneState{} }

// lost is called before the machine is told that a lane is gone.
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

// part is called when a delivery that may not have been settled is out of the
// machine's hands.
func (c *checker) part(h *handed) {
	if !h.stale && !h.told {
		c.w.store.Parted[identity(h.item)]++
	}
	h.stale = true
}

// partAll parts with everything: the process is over.
func (c *checker) partAll() {
	for _, h := range c.hands {
		c.part(h)
	}
}

// event is called before the machine is told.
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

// begun is called before the machine hears of a flight's marks.
func (c *checker) begun(e machine.Marked) {
	if e.Class == store.ClassNone {
		c.marked(e)
		if c.known.probe == e.Flight { // it has opened
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

// ended is called before the machine hears how a flight ended.
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

// learned is called when the machine hears that a flight is committed.
func (c *checker) learned(f *flight) {
	for i, e := range f.of.Entries {
		h, v := handOf(e.Item), f.verdicts[i]
		h.newer = v.Kind == store.Newer
		if early(v) {
			c.outOfTurn(f, i)
			continue
		}
		if v.Kind == store.Conflict {
			h.suspicion = suspicion{} // no run of its follows
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

// after is called when what the machine answered was carried out.
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

// checkCounts holds the machine's counts against what it was told and did.
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

// ended is the sum of what counts as an end.
func ended(c machine.Counts) int64 {
	return c.Applied + c.Duplicates + c.Conflicts + c.Parked + c.DeadLettered + c.Discarded + c.Skipped + c.Received + c.Waiting + c.Failed
}

func (c *checker) arose(law string) { c.w.arose(law) }
