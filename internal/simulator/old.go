package simulator

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// asOld is how the policy ends what is too old.
func (c *checker) asOld() machine.As {
	switch c.p.config.OnExpired {
	case machine.EndDiscard:
		return machine.AsDiscarded
	case machine.EndDeadLetter:
		return machine.AsDeadLettered
	}
	return machine.AsParked
}

// tooOld is called when the machine hears that an entry is older than what is kept: it
// ends as the policy says, without a run. That it was there before, nobody but the
// checker knows.
func (c *checker) tooOld(h *handed, as machine.As) {
	c.arose("H4")
	if as == machine.AsBlocked {
		c.w.coverage.Add("fault", "too old, and known only when it is to wait behind another")
	}
	if id := identity(h.item); !c.w.store.WasRemoved(id) && !c.w.passedBy[id] {
		c.broke("H3", "%s is too old for the store, and nothing was ever removed of it", id)
	}
	h.must, h.reason = c.asOld(), semel.ReasonExpired
	c.w.coverage.Add("fault", "too old, and ends as "+trace.Word(trace.AsNames[:], h.must))
	h.suspicion = suspicion{} // no run of its follows
}

// endsAsOld reports whether a delivery was found too old, and has not ended as that.
func (h *handed) endsAsOld() bool { return h.must != 0 && h.reason == semel.ReasonExpired }

// oldBefore returns the first entry of a flight that is too old and stands before another
// in its line, -1 if there is none.
func (c *checker) oldBefore(f *flight, entry int) int {
	l, ordered := c.lineOf(f.of.Entries[entry].Item)
	for i, e := range f.of.Entries[:entry] {
		if before, _ := c.lineOf(e.Item); ordered && before == l && f.verdicts[i].Kind == store.Old {
			return i
		}
	}
	return -1
}

// keptBehindOld counts what a flight took back because it stands behind what is too old.
func (c *checker) keptBehindOld(f *flight) {
	for _, i := range f.trim {
		if c.p.config.Block && f.verdicts[i].Kind == store.Fresh && c.oldBefore(f, i) >= 0 {
			c.w.coverage.Add("fault", "kept back behind what is too old")
		}
	}
}

// besideOld checks that nothing takes effect before an earlier message of its line that
// was found too old and will be parked, where what is keeps its line back.
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
		if other, _ := c.lineOf(h.item); h.claim == nil && other == l && h.arrival < handOf(it).arrival && h.endsAsOld() && c.alive(h) && !h.asked && !h.handled {
			c.broke("case 7", "%s takes effect behind %s, which is too old and will be in the inbox", x.Message.Name(), h.delivery.Message.Name())
		}
	}
}

// checkRemoved holds a message of which the store has removed something against what that
// was, when all is over: it took effect once at most, whatever came after that.
func (w *world) checkRemoved(m *model.Message) {
	effects, was := w.store.Effects[m.ID], w.store.Gone[m.ID]
	w.arose("H3")
	switch {
	case effects > 1:
		w.broke("law 12", "%s has %d effects, and its marker was removed %d times", m.ID, effects, was.Times)
	case effects == 0 && was.Outcome == store.Applied && !w.saidDuplicate(m.ID):
		w.broke("law 12", "%s was marked as applied and has no effect", m.ID)
	}
}
