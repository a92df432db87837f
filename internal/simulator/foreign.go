package simulator

import (
	"slices"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/source"
)

// makeForeign makes a message another consumer's. One that is skipped needs no
// name of its own, and may have the one of a message that is ours.
func (w *world) makeForeign(m *model.Message, i int) {
	m.Refused, m.Foreign, m.Conduct, m.Times, m.Print = "foreign", true, model.Succeeds, 0, semel.Fingerprint{}
	switch {
	case w.plan.Config.OnFiltered != machine.EndSkip:
		m.Source, m.Identity = "surrogate", strconv.Itoa(i)
	case len(w.messages) > 0 && w.choices.Flip():
		other := w.messages[w.choices.Below(len(w.messages))]
		m.Source, m.Identity = other.Source, other.Identity
	}
}

// skips reports whether a message is one that is only settled.
func (c *checker) skips(m *model.Message) bool {
	return m.Foreign && c.p.config.OnFiltered == machine.EndSkip
}

// onRefused is what the policy does with a message that is refused.
func onRefused(conf machine.Config, m *model.Message) machine.Ending {
	if m.Foreign {
		return conf.OnFiltered
	}
	return conf.OnBadIdentity
}

// foreignEntry checks that nothing of another consumer's has a handler, and that
// what is skipped is in no flight (C16).
func (c *checker) foreignEntry(f *machine.Flight, e machine.Entry, m *model.Message) {
	switch {
	case !m.Foreign:
	case c.skips(m):
		c.broke("C16", "%s is another consumer's and to be skipped, and is in f%d", m.Name(), f.Number)
	case e.As != machine.AsParked && e.As != machine.AsDeadLettered:
		c.broke("C16", "%s is another consumer's, and is %s in f%d", m.Name(), trace.Word(trace.AsNames[:], e.As), f.Number)
	default:
		c.arose("C16")
	}
}

// skipped checks the end of what is another consumer's: counted as skipped, and
// not while the store is down, if something else will ask for it (law 13).
func (c *checker) skipped(s *machine.Settlement, m *model.Message, others int) {
	c.arose("C16")
	switch {
	case s.Ending != source.EndSkipped:
		c.broke("C16", "%s is another consumer's, and is settled as %s", m.Name(), s.Ending.String())
	case s.Again:
	case c.known.down && others > 0 && !c.handlerSticks():
		c.broke("law 13", "%s is another consumer's, and is settled while the store is down", m.Name())
	case c.known.down:
		c.w.coverage.Add("fault", "skipped while the store is down, and nothing else would ask")
	}
}

// handlerSticks reports whether a handler goes on after its time-out.
func (c *checker) handlerSticks() bool {
	for _, f := range c.p.flights {
		if f.killed && f.phase == running { // the machine has not heard of its end
			return true
		}
	}
	return false
}

// besideSkipped counts what the machine holds beside a Settle that will ask the store: what
// has not only to settle, and does not wait until something is.
func (c *checker) besideSkipped(a *machine.Settle) (n int) {
	waits := c.waitForSource(a)
	for _, h := range c.hands {
		leaving := c.stopping || !h.stale && c.lanes[h.item.Lane].revoking
		settles := c.skips(h.delivery.Message) || h.asked || h.left
		if c.alive(h) && !settles && !waits[h] && (!leaving || h.flight != nil) {
			n++
		}
	}
	return n
}

// checkSkipped checks that what is another consumer's is settled at once, unless
// it waits for a store that something else asks for (C16).
func (c *checker) checkSkipped() {
	if c.over || c.stopping || c.halting() || c.p.config.OnFiltered != machine.EndSkip {
		return
	}
	var waits *handed
	others := 0
	for _, h := range c.hands {
		switch {
		case !c.alive(h) || h.asked || h.left || c.behindCopy(h):
		case !c.skips(h.delivery.Message):
			others++
		case !c.lanes[h.item.Lane].revoking:
			waits = h
		}
	}
	switch {
	case waits == nil:
	case !c.known.down || c.p.config.OneAttempt:
		c.broke("C16", "%s is another consumer's, and is not settled at once", trace.Item(waits.item))
	case others == 0 && len(c.p.flights) == 0: // a flight asks also when its lane has gone
		c.broke("C16", "%s is another consumer's and waits for the store, and nothing asks for it", trace.Item(waits.item))
	default:
		c.w.coverage.Add("fault", "what is to be skipped waits for the store")
	}
}

// behindCopy reports whether a delivery that has never flown stands behind one in its line
// of which a dead letter is being made: it asks the store for nothing before that is made.
func (c *checker) behindCopy(h *handed) bool {
	l, ordered := c.lineOf(h.item)
	return ordered && h.worker == 0 && !c.skips(h.delivery.Message) && slices.ContainsFunc(c.hands, func(g *handed) bool {
		before, _ := c.lineOf(g.item)
		return g.copying && c.alive(g) && before == l && g.arrival < h.arrival
	})
}

// checkForeign checks that nothing is written of what was skipped (C16).
func (w *world) checkForeign(m *model.Message) {
	if m.Foreign && w.plan.Config.OnFiltered == machine.EndSkip && !w.named(m.ID) {
		_, marked := w.store.Markers[m.ID]
		if marked || w.store.Effects[m.ID] > 0 || w.store.Rows[model.RowKey{ID: m.ID}] != nil {
			w.broke("C16", "%s is another consumer's, and the store holds something of it", m.Name())
		}
	}
}

// named reports whether a message of the consumer's has the identity.
func (w *world) named(id string) bool {
	for _, m := range w.messages {
		if m.ID == id && !m.Foreign {
			return true
		}
	}
	return false
}
