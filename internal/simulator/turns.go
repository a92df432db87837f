package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// turn is what the checker knows about a message whose version is not the next version of its stream.
type turn struct {
	// isOutOfTurn is true if the store has reported that the version is not the next one.
	isOutOfTurn bool
	// requiredOutcome is the outcome that the message must have in its next batch, or 0 if the message may run again.
	// The field reason is the reason that the row of the message must have.
	requiredOutcome machine.As
	reason          semel.Reason
	// requiredDelay is how long the message must wait.
	requiredDelay time.Duration
}

// cannotRunNow reports whether a message must not run now: because its version is not the next, because it must
// wait for an earlier message, or because it is too old.
func cannotRunNow(v store.Verdict) bool {
	return v.Kind == store.Gap || v.Kind == store.Stale || v.Kind == store.Behind || v.Kind == store.Old
}

// outOfTurn is called when the store's answer is that an entry must not run now.
func (c *checker) outOfTurn(f *flight, i int) {
	h, v := handOf(f.of.Entries[i].Item), f.verdicts[i]
	h.turn = turn{isOutOfTurn: true}
	if v.Kind == store.Stale && f.passedInVain(h.delivery.Message) {
		c.w.coverage.Add("fault", "a version asks again behind one that was taken back")
		return
	}
	switch {
	case v.Kind == store.Old:
		c.tooOld(h, f.of.Entries[i].As)
	case v.Kind == store.Stale && v.Known && c.p.config.OnConflict != machine.EndKeepFirst:
		h.requiredOutcome, h.reason = machine.AsParked, semel.ReasonConflict
	case v.Kind == store.Stale:
		h.requiredOutcome, h.reason = machine.AsDiscarded, reasonname.Stale
	case v.Kind == store.Behind:
		h.requiredOutcome, h.reason = machine.AsBlocked, reasonname.Behind
	case c.movedIn(f, h.delivery.Message.Stream):
		c.w.coverage.Add("fault", "a version asks again after those of its flight")
	case h.claim != nil && h.claim.Blocked:
		h.requiredOutcome, h.reason = machine.AsOverdue, semel.ReasonGap
	default:
		h.requiredOutcome, h.reason, h.requiredDelay = machine.AsBlocked, semel.ReasonGap, c.p.config.Gap
		if most := c.p.config.GapCap; most != 0 && v.Missing > most {
			h.requiredDelay = time.Millisecond
			c.w.coverage.Add("fault", "a version too far ahead")
		}
	}
	if v.Kind == store.Stale {
		c.arose("B4")
		h.suspicion = suspicion{} // the handler will not run again
	}
}

// passedInVain reports whether a marker that the batch removed again would have moved the stream of m to its
// version or beyond.
func (f *flight) passedInVain(m *model.Message) bool {
	return slices.ContainsFunc(f.trim, func(i int) bool {
		other, as := f.message(i), f.of.Entries[i].As
		moves := as == machine.AsApplied || as == machine.AsDuplicate || as == machine.AsDiscarded
		return f.verdicts[i].Kind == store.Fresh && moves && other.Stream == m.Stream && other.Version >= m.Version
	})
}

// movedIn reports whether a committed batch has ended a version of a stream.
func (c *checker) movedIn(f *flight, stream string) bool {
	for i, e := range f.of.Entries {
		ended := e.As == machine.AsApplied || e.As == machine.AsDuplicate || e.As == machine.AsDiscarded
		if ended && f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i) && f.message(i).Stream == stream {
			return true
		}
	}
	return false
}

// entryInTurn checks that a message waits, or ends without a run, if and only if it must.
func (c *checker) entryInTurn(e machine.Entry, h *itemState) {
	waits := e.As == machine.AsBlocked || e.As == machine.AsOverdue
	switch {
	case h.requiredOutcome != 0 && e.As != h.requiredOutcome:
		c.broke(h.lawOfTurn(), "%s is marked as %s, and should be as %s (%s)", trace.Item(e.Item), trace.Word(trace.AsNames[:], e.As), trace.Word(trace.AsNames[:], h.requiredOutcome), h.reason)
	case h.requiredOutcome == 0 && waits:
		c.broke("B9", "%s is to wait for an earlier version, and nobody said that one is missing", trace.Item(e.Item))
	case e.As == machine.AsBlocked && h.reason == reasonname.Behind:
		c.arose("case 7")
	case e.As == machine.AsBlocked:
		c.arose("B9")
	case waits:
		c.arose("trap T55")
	}
}

// lawOfTurn returns the law that says how a message ends that must not run.
func (h *itemState) lawOfTurn() string {
	switch h.reason {
	case semel.ReasonGap:
		return "B9"
	case reasonname.Behind:
		return "case 7"
	case reasonname.Expired:
		return "H4"
	}
	return "B4"
}

// rowInTurn checks the row of a message that must wait or end without a run.
func (c *checker) rowInTurn(r machine.Row, h *itemState) {
	if h.requiredOutcome == 0 || r.As != h.requiredOutcome || r.Repeat || r.Conflict {
		return
	}
	if r.Reason != h.reason {
		c.broke(h.lawOfTurn(), "the row of %s says %q, and should say %q", trace.Item(h.item), r.Reason, h.reason)
	}
	if h.reason == reasonname.Behind {
		return
	}
	if r.As == machine.AsBlocked && r.After != h.requiredDelay {
		c.broke("trap T55", "%s is to wait for an earlier version for %v, and should for %v", trace.Item(h.item), r.After, h.requiredDelay)
	}
}

// inOrder checks that a batch commits the next versions of each stream, and each version once.
func (c *checker) inOrder(f *flight) {
	applied := map[int]bool{}
	for _, x := range f.tx.Effects {
		applied[x.Entry] = !x.Part
	}
	for i, e := range f.of.Entries {
		m := f.message(i)
		ended := f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i)
		last := c.w.ledger[m.Stream]
		switch {
		case m.Version == 0 || c.p.config.Unmarked:
		case applied[i], ended && e.As == machine.AsDuplicate:
			c.arose("B9")
			if m.Version != last+1 {
				c.broke("B9", "%s takes effect as version %d of %s, which is at %d", m.Name(), m.Version, m.Stream, last)
			}
			c.w.ledger[m.Stream] = m.Version
		case ended && e.As == machine.AsDiscarded && f.nextVersions[i] && m.Version == last+1:
			c.w.ledger[m.Stream] = m.Version
		case ended && e.As == machine.AsDiscarded && m.Version > last:
			c.broke("B4", "%s is discarded as version %d of %s, which is at %d", m.Name(), m.Version, m.Stream, last)
		}
		if at := c.w.store.Stream(m.Stream).At.Version; m.Version > 0 && f.isLastOfStream(i) && at != c.w.ledger[m.Stream] {
			c.broke("B9", "%s is at %d in the store, and version %d has ended", m.Stream, at, c.w.ledger[m.Stream])
		}
	}
}

// isLastOfStream reports whether the batch has no later entry of the same stream.
func (f *flight) isLastOfStream(entry int) bool {
	for i := entry + 1; i < len(f.of.Entries); i++ {
		if f.message(i).Stream == f.message(entry).Stream {
			return false
		}
	}
	return true
}

// passedOver reports whether later deliveries of a lane may be applied before a delivery, because that delivery must
// wait or end without a run.
func (c *checker) passedOver(f *flight, d *model.Delivery) bool {
	late := c.w.passedBy[d.Message.ID] // the message may also be too old although it was never processed
	if d.Message.Version == 0 && !late {
		return false
	}
	for i, v := range f.verdicts {
		if f.message(i).ID == d.Message.ID && cannotRunNow(v) && (d.Message.Version > 0 || v.Kind == store.Old) {
			return true
		}
	}
	return slices.ContainsFunc(c.hands, func(h *itemState) bool {
		return h.isOutOfTurn && h.delivery.Message.ID == d.Message.ID && (d.Message.Version > 0 || h.endsAsOld())
	})
}

// checkStreams checks at the end of a run that no version waits whose earlier versions have all taken effect.
func (w *world) checkStreams() {
	for _, r := range w.store.Inbox {
		if m := r.Message; m.Version > 0 && (r.Overdue() || r.As == machine.AsBlocked) && m.Version <= w.ledger[m.Stream]+1 {
			w.broke("trap T55", "%s waits for a version before %d of %s, and that is at %d", m.Name(), m.Version, m.Stream, w.ledger[m.Stream])
		}
	}
}

// inPlace checks that no message is applied while an earlier message of its key or lane is in the inbox.
func (c *checker) inPlace(f *flight, x model.Effect) {
	line := f.lineName(x.Entry)
	if line == "" {
		return
	}
	for _, r := range c.w.store.Inbox {
		if !r.KeepsBack() || r.ByHand || r.Line != line || r.Message.ID == x.Message.ID {
			continue
		}
		c.arose("case 7")
		after := c.w.comesAfter(x.Message, r.Message)
		if d := handOf(f.of.Entries[x.Entry].Item).delivery; r.From != nil { // an earlier copy had ended
			after = r.From.Lane == d.Lane && r.From.Position < d.Position
		}
		if after {
			c.broke("case 7", "%s takes effect, and %s is before it in %s", x.Message.Name(), r.Key.ID, line)
		}
	}
}

// comesAfter reports whether the message m comes after the message other in a lane. If one of the two messages has
// copies in several lanes, the order is unknown.
func (w *world) comesAfter(m, other *model.Message) (after bool) {
	for _, l := range w.Source.Lanes {
		first := func(m *model.Message) int {
			return slices.IndexFunc(l.Log, func(d *model.Delivery) bool { return d.Message.ID == m.ID && d.Message.Refused == "" })
		}
		x, y := first(m), first(other)
		if x >= 0 && y >= 0 && y < x {
			after = true
		} else if x >= 0 || y >= 0 {
			return false
		}
	}
	return after
}

// checkLines checks at the end of a run that no row waits although it is the first row of its queue (of a key or lane).
func (w *world) checkLines() {
	for _, r := range w.store.Inbox {
		if r.Follows() && w.store.First(r.Line) == r {
			w.broke("law 11", "%s waits behind another of %s, and is the first", r.Key.ID, r.Line)
		}
	}
}

// asOld returns the outcome that the policy gives to a message that is too old.
func (c *checker) asOld() machine.As {
	switch c.p.config.OnExpired {
	case machine.EndDiscard:
		return machine.AsDiscarded
	case machine.EndDeadLetter:
		return machine.AsDeadLettered
	}
	return machine.AsParked
}

// tooOld is called when the store's answer is that an entry is older than the retention. The message ends as the policy
// says, without a run. Only the checker knows whether the message was applied before.
func (c *checker) tooOld(h *itemState, as machine.As) {
	c.arose("H4")
	if as == machine.AsBlocked {
		c.w.coverage.Add("fault", "too old, and known only when it is to wait behind another")
	}
	if id := identityOf(h.item); !c.w.store.WasRemoved(id) && !c.w.passedBy[id] {
		c.broke("H3", "%s is too old for the store, and nothing was ever removed of it", id)
	}
	h.requiredOutcome, h.reason = c.asOld(), reasonname.Expired
	c.w.coverage.Add("fault", "too old, and ends as "+trace.Word(trace.AsNames[:], h.requiredOutcome))
	h.suspicion = suspicion{} // the handler will not run again
}

// endsAsOld reports whether a delivery was found to be too old and has not ended yet.
func (h *itemState) endsAsOld() bool { return h.requiredOutcome != 0 && h.reason == reasonname.Expired }

// oldBefore returns the first entry of a batch that is too old and comes before the given entry in the same key or
// lane, or -1 if there is none.
func (c *checker) oldBefore(f *flight, entry int) int {
	l, ordered := c.lineOf(f.of.Entries[entry].Item)
	for i, e := range f.of.Entries[:entry] {
		if before, _ := c.lineOf(e.Item); ordered && before == l && f.verdicts[i].Kind == store.Old {
			return i
		}
	}
	return -1
}

// keptBehindOld counts the markers that a batch removed again because an earlier message of the same key or lane is too
// old.
func (c *checker) keptBehindOld(f *flight) {
	for _, i := range f.trim {
		if c.p.config.Block && f.verdicts[i].Kind == store.Fresh && c.oldBefore(f, i) >= 0 {
			c.w.coverage.Add("fault", "kept back behind what is too old")
		}
	}
}

// besideOld checks, if parked messages block later messages, that no message is applied while an earlier message of its
// key or lane is too old and will be parked.
func (c *checker) besideOld(f *flight, x model.Effect) {
	it := f.of.Entries[x.Entry].Item
	l, ordered := c.lineOf(it)
	if !c.p.config.Block || !ordered || c.asOld() != machine.AsParked {
		return
	}
	if i := c.oldBefore(f, x.Entry); i >= 0 {
		c.broke("case 7", "%s takes effect behind %s, which is too old and will be in the inbox", x.Message.Name(), f.message(i).Name())
	}
	for _, h := range c.hands {
		if other, _ := c.lineOf(h.item); h.claim == nil && other == l && h.arrival < handOf(it).arrival && h.endsAsOld() && c.alive(h) && !h.settling && !h.handled {
			c.broke("case 7", "%s takes effect behind %s, which is too old and will be in the inbox", x.Message.Name(), h.delivery.Message.Name())
		}
	}
}

// checkRemoved checks, at the end of a run, a message whose marker was removed: the message took effect at most once,
// even if copies came later.
func (w *world) checkRemoved(m *model.Message) {
	effects, was := w.store.Effects[m.ID], w.store.Gone[m.ID]
	w.arose("H3")
	switch {
	case effects > 1:
		w.broke("law 12", "%s has %d effects, and its marker was removed %d times", m.ID, effects, was.Times)
	case effects == 0 && was.Outcome == store.Applied && !w.SaidDuplicate(m.ID):
		w.broke("law 12", "%s was marked as applied and has no effect", m.ID)
	}
}

// formersApart checks that the open batches never contain two messages with the same previous identity (A7),
// because the marker of one message would decide about the other.
func (c *checker) formersApart(f *machine.Flight, marked map[string]bool, m *model.Message) {
	if m.Former == "" {
		return
	}
	apart := !marked[m.Former]
	marked[m.Former] = true
	for _, g := range c.p.flights {
		for i := range g.of.Entries {
			apart = apart && (g.message(i).Former != m.Former || handOf(g.of.Entries[i].Item).claim != nil)
		}
	}
	if !apart {
		c.broke("A7", "%s is in f%d, and another with its former identity %s is in flight", m.Name(), f.Number, m.Former)
	}
}
