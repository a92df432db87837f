package simulator

import (
	"maps"
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
)

// storeOf is the generation in which a delivery's end was committed.
func (c *checker) storeOf(h *handed) *model.Store {
	last := c.p.last
	switch {
	case h.in != nil:
	case last != nil && last.store != nil: // it rode
		h.in = last.store
	default:
		h.in = c.w.store
	}
	return h.in
}

// inItsStore does something in the generation in which a delivery's end was committed.
func (c *checker) inItsStore(h *handed, do func()) {
	if c.w.stores == nil {
		do()
		return
	}
	is := c.w.store
	c.w.store = c.storeOf(h)
	do()
	c.w.store = is
}

// knownToActive checks that what is settled after a switch is known to the generation that
// is active (G2).
func (c *checker) knownToActive(h *handed) {
	w, m := c.w, h.delivery.Message
	if w.active == 0 {
		return
	}
	w.arose("G2")
	if _, marked := w.stores[w.active].Marked(m); !marked {
		w.broke("G2", "%s is settled, and the generation that is active knows nothing of it", m.Name())
	}
}

// inActive checks that nobody commits in a generation that is no longer active (G2).
func (c *checker) inActive(f *flight) {
	if w := c.w; w.active > 0 && f.generation != w.active {
		w.broke("G2", "f%d of a process that has slept commits in the generation that was active", f.of.Number)
	}
}

// checkSwitch checks that the new generation knows all that is settled (G2).
func (w *world) checkSwitch() {
	w.arose("G2")
	for _, l := range w.source.Lanes {
		for _, d := range l.Log {
			if _, marked := w.store.Marked(d.Message); d.Settled && !marked && !w.skippedOnly(d.Message) {
				w.broke("G2", "%s at %s/%d is settled, and the new generation knows nothing of it", d.Message.Name(), l.ID, d.Position)
			}
		}
	}
}

// skippedOnly reports whether a message is another consumer's, and is only settled.
func (w *world) skippedOnly(m *model.Message) bool {
	return m.Foreign && w.plan.Config.OnFiltered == machine.EndSkip
}

// checkProjection holds the effects of the new generation against those of the old one,
// when all is over: what can only succeed took effect in both (G2).
func (w *world) checkProjection() {
	if w.active == 0 {
		return
	}
	old := w.stores[0]
	for _, m := range w.messages {
		if n := w.store.Effects[m.ID]; m.Harmless && m.Refused == "" && m.Charged == 0 && !w.hasOtherContent(m) && n != 1 {
			w.broke("G2", "%s has %d effects in the new generation, and %d in the old one", m.ID, n, old.Effects[m.ID])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.store.Effects)) {
		if n := w.store.Effects[id]; n > 1 {
			w.broke("law 12", "%s has %d effects in the new generation", id, n)
		}
	}
}
