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

// checker checks one process of a run. The checker knows the events and actions of the machine and the contents of the
// store, but not the internal state of the machine.
type checker struct {
	p *process
	w *world

	lanes   map[source.Lane]*laneState
	hands   []*itemState
	arrival int

	fetching, sourceEnded bool
	// sourceFails is true if the last Fetch failed.
	sourceFails bool
	lastFetch   fetchState
	claims      claimsKnown
	stopping    bool
	stopAt      time.Duration
	over        bool
	mustKill    *machine.Flight

	// begins is the number of transactions that the machine tried to begin during an outage.
	begins   int
	outageAt time.Duration
	askedAt  time.Duration // start of the last batch

	known   storeKnown
	retries retriesKnown
	breaker breakerKnown
	stuck   []*machine.Flight // batches whose handlers never return
	// metDown is true if the current event belongs to a batch for which the store was down.
	metDown bool
	pauses  map[int]pause               // by worker
	keys    map[uint64]*machine.Flight  // open batches, by route
	counts  machine.Counts              // the counts that the machine should have
	size    machine.Size                // size of the machine after the last event
	held    int                         // number of deliveries in memory after the last event
	told    [len(trace.ReportNames)]int // number of reports in the current event, by kind
	// The field commits is the number of committed transactions. The field outages is the number of transactions that
	// could not begin.
	commits, outages int
}

// laneState is the state of a lane in one epoch, according to the events that the machine got.
type laneState struct {
	revoking, released, gone bool
}

// handState is what the checker knows about a delivery that a process has in memory.
type handState struct {
	// The field stale is true if the lane was lost, so that the delivery must not be acked or nacked.
	stale bool
	// endStore is the store that has the committed end of the delivery.
	endStore *model.Store
	// flight is the open batch that contains the delivery, or nil if no batch contains it.
	flight *machine.Flight
	// settling is true while a Settle (ack, nack or dead letter) for the delivery is in progress; settled is true after
	// the response.
	settling, settled bool
	// settleFailed is true if the last Settle reported that the delivery is not acked or nacked.
	settleFailed bool
	// handled is true if the store has the marker of the delivery, or its effect without a marker. applied is
	// true if the store has the effect of its handler.
	handled, applied bool
	// copying is true while the dead letter of the delivery is being written. copied is true after the machine got the
	// event that the dead letter was written.
	copying, copied bool
	// isCopy is true if a committed batch found that the delivery is a copy or a conflict. hasNewerMarker is true if
	// the last batch found a marker of a newer release.
	isCopy, hasNewerMarker bool
	// rerun is true if a success of the handler was rolled back on purpose.
	rerun bool

	// conflicted is true if the row that may have been committed is the row of a conflict.
	conflicted bool

	tries
	turn
	suspicion suspicion
}

func (c *checker) broke(law, format string, args ...any) { c.w.broke(law, format, args...) }

func (c *checker) recordGiven(l source.Lane) { c.lanes[l] = &laneState{} }

// checkLost is called before the machine gets the event that a lane is lost.
func (c *checker) checkLost(l source.Lane) {
	if s := c.lanes[l]; s != nil {
		s.gone = true
	}
	for _, h := range c.hands {
		if h.item.Lane == l {
			c.dropDelivery(h)
		}
	}
}

// dropDelivery is called when the machine drops a delivery that may not be acked or nacked yet.
func (c *checker) dropDelivery(h *itemState) {
	if !h.stale && !h.settled {
		c.w.store.Parted[identityOf(h.item)]++
	}
	h.stale = true
}

// dropAllDeliveries calls dropDelivery for all deliveries when the process ends.
func (c *checker) dropAllDeliveries() {
	for _, h := range c.hands {
		c.dropDelivery(h)
	}
}

// checkEvent is called before the machine gets an event.
func (c *checker) checkEvent(e machine.Event) {
	c.metDown = false
	switch e := e.(type) {
	case machine.Fetched:
		c.checkFetched(e)
	case machine.Claimed:
		c.checkClaimed(e)
	case machine.Due:
		c.claims.triggers++
	case machine.Revoking:
		c.lanes[e.Lane].revoking = true
	case machine.Stop:
		c.stopping, c.stopAt = true, c.w.now
		c.p.schedule(c.p.config.Drain+time.Second, func() {
			c.broke("law 11", "a stop has not ended a second after its drain of %v", c.p.config.Drain)
		})
	case machine.Stuck:
		c.mustKill = e.Flight
	case machine.Marked:
		c.checkBegun(e)
	case machine.Ended:
		c.leaveFlight(e.Flight)
		c.checkEnded(e)
	case machine.Settled:
		c.checkSettled(e)
	}
}

func (c *checker) checkFetched(e machine.Fetched) {
	c.fetching = false
	c.checkFetchResult(e)
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

// checkBegun is called before the machine gets the store's answers for the markers of a batch.
func (c *checker) checkBegun(e machine.Marked) {
	if e.Class == store.ClassNone {
		c.checkMarked(e)
		if c.known.probe == e.Flight { // the transaction has begun
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

// checkEnded is called before the machine gets the event Ended, which says how a batch ended.
func (c *checker) checkEnded(e machine.Ended) {
	f := c.p.last
	c.metDown = e.Class == store.ClassDown || f.failed && f.failure.Class == store.ClassDown
	c.suspect(f, e)
	if e.Outcome == store.Committed {
		c.commits++
		c.recordCommit(f)
		c.succeeded(f)
		c.expect(f)
		if e.Freed {
			c.claims.triggers += 2
		}
		return
	}
	c.recordRollback(f)
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

// recordCommit is called when the machine gets the event that a batch was committed.
func (c *checker) recordCommit(f *flight) {
	for i, e := range f.of.Entries {
		h, v := handOf(e.Item), f.verdicts[i]
		h.hasNewerMarker = v.Kind == store.Newer
		if cannotRunNow(v) {
			c.outOfTurn(f, i)
			continue
		}
		if v.Kind == store.Conflict {
			h.suspicion = suspicion{} // the handler will not run again
			h.requiredOutcome = 0     // the message must end as a conflict
		}
		again := newConflict(v) && c.p.config.OnConflict == machine.EndDeadLetter && !h.copied
		if v.Kind != store.Fresh && v.Kind != store.Busy && v.Kind != store.Newer && v.Kind != store.ClaimLost && !again {
			h.isCopy = true
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

func (c *checker) checkSettled(e machine.Settled) {
	for i, s := range e.Settle.Items {
		h := handOf(s.Item)
		h.settling, h.settled, h.settleFailed = false, true, false
		for _, l := range e.Left {
			if l == i {
				h.settled, h.settleFailed = false, true
			}
		}
		if s.Kind == semel.DeadLetter && h.settled {
			h.settled, h.copied, h.copying = false, true, false
		}
	}
}

// checkAfterEvent is called after the machine's actions for an event were carried out.
func (c *checker) checkAfterEvent(e machine.Event) {
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
	c.checkReportCounts(e)
	c.checkLeaving()
	c.checkAsking()
	c.checkSkipped()
	c.sawOutage()
}

// forget removes ended deliveries from the list.
func (c *checker) forget() {
	if len(c.hands) < 64 {
		return
	}
	kept := c.hands[:0]
	for _, h := range c.hands {
		if !h.settled {
			kept = append(kept, h)
		}
	}
	c.hands = kept
}

// unsettled returns the number and the bytes of the deliveries of the machine's lanes that are not acked or nacked.
func (c *checker) unsettled() (messages int, bytes int64) {
	for _, h := range c.hands {
		// In a revoked lane, the machine has dropped the deliveries that are not in a batch.
		leaving := c.stopping || !h.stale && c.lanes[h.item.Lane].revoking
		if !h.settled && !h.stale && (!leaving || h.settling || h.flight != nil) {
			messages++
			bytes += int64(h.item.Size)
		}
	}
	return messages, bytes
}

// checkCounts compares the machine's counts with the counts that follow from its events and actions.
func (c *checker) checkCounts() {
	got, want := c.p.machine.Counts(), c.counts
	want.Deliveries = int64(c.claims.delivered)
	want.Failed = got.Failed // only Done says which message halted the machine
	if got != want || countEnded(got) > got.Deliveries || got.Failed > 0 && !c.mayHalt() {
		c.broke("counts", "they are %+v and should be %+v", got, want)
	}
}

func (c *checker) mayHalt() bool {
	return machine.EndHalt == c.p.config.OnExhausted || machine.EndHalt == c.p.config.OnConflict || machine.EndHalt == c.p.config.OnBadIdentity
}

// countEnded returns the number of ended deliveries.
func countEnded(c machine.Counts) int64 {
	return c.Applied + c.Duplicates + c.Conflicts + c.Parked + c.DeadLettered + c.Discarded + c.Skipped + c.Received + c.Waiting + c.Failed
}

func (c *checker) arose(law string) { c.w.arose(law) }
