package simulator

import (
	"slices"

	"github.com/semel-go/semel/contract"
)

// checkOffsets checks that nobody but the live processes moves their places in the log
// (trap T45).
func (w *world) checkOffsets() {
	for _, l := range w.source.lanes {
		if l.of != nil {
			continue
		}
		w.arose("trap T45")
		if i := slices.IndexFunc(l.log, func(d *delivery) bool { return d.settled && !d.acknowledged }); i >= 0 {
			w.broke("trap T45", "%s/%d is settled, and no live process has settled it", l.id, i)
		}
	}
}

// asForeseen checks that a replay is answered as its plan said, where nothing live has
// changed since (G4).
func (f *flight) asForeseen() {
	w := f.p.w
	for i, e := range f.of.Entries {
		h, v := handOf(e.Item), f.verdicts[i].Kind
		foreseen, there := w.replay.foreseen[h.delivery]
		if !there || h.claim != nil || v == contract.Busy || v == contract.Behind {
			continue
		}
		delete(w.replay.foreseen, h.delivery)
		if m := h.delivery.message; foreseen.changes == w.store.changes[m.id] && foreseen.low == w.store.low {
			w.arose("G4")
			w.coverage.add("fault", "a replay is answered as foreseen: "+v.String())
			if v != foreseen.kinds[f.p.version] {
				w.broke("G4", "%s is %s, and the plan said that it would be %s", m.name(), v.String(), foreseen.kinds[f.p.version].String())
			}
		}
	}
}

// keepsIdentity checks that what takes effect of a replay is the message that the producer
// sent (law 14).
func (c *checker) keepsIdentity(f *flight, x effect) {
	w, m, number := c.w, x.message, x.message.number
	if first, before := w.tookBy[number]; before && first != m.id {
		w.broke("law 14", "m%d takes effect as %s, and did as %s", number, m.id, first)
	}
	w.tookBy[number] = m.id
	of := handOf(f.of.Entries[x.entry].Item).delivery.of
	if of == nil {
		return
	}
	w.arose("law 14")
	w.coverage.add("fault", "what was missing takes effect in a replay")
	if p := of.message; p.id != m.id || p.source != m.source || p.identity != m.identity || p.route != m.route || p.stream != m.stream || p.version != m.version || p.print != m.print {
		w.broke("law 14", "%s takes effect in a replay as another: %s", p.name(), m.id)
	}
}
