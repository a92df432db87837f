package simulator

import (
	"slices"

	"github.com/semel-go/semel/store"
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
		if !there || h.claim != nil || v == store.Busy || v == store.Behind {
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
	w.sameAsOriginal(m)
	w.inKeyOrder(m, handOf(f.of.Entries[x.entry].Item).claim)
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

// checkTurn checks that nobody acts whose turn another has taken (law 5, trap T47).
func (w *world) checkTurn(o *operator) {
	w.arose("trap T47")
	if w.operating.by != o {
		w.broke("trap T47", "%s makes rows due, and it is %s's turn", o.name, w.operating.by.name)
	}
}

// checkEdit checks that what is edited has not taken effect (G5).
func (w *world) checkEdit(r *row) {
	w.arose("G5")
	if w.store.effects[r.key.id] > 0 {
		w.broke("G5", "%s is edited, and has taken effect", r.key.id)
	}
}

// inKeyOrder checks that what a person lets run again takes effect behind what was made due
// before it, of the same key (law 8).
func (w *world) inKeyOrder(m *message, claim *claim) {
	if claim == nil || claim.row.wasMade == 0 {
		return
	}
	w.coverage.add("fault", "what a person has made due takes effect")
	for _, r := range w.store.inbox {
		if r.made > 0 && r.made < claim.row.wasMade && r.waits() && r.message.route == m.route && r != claim.row {
			w.broke("law 8", "%s takes effect again before %s, which was made due before it", m.name(), r.key.id)
		}
	}
}

// sameAsOriginal checks that an edited message is the original in all but its content
// (law 14).
func (w *world) sameAsOriginal(m *message) {
	p := m.edited
	if p == nil {
		return
	}
	w.coverage.add("fault", "what was edited takes effect")
	if p.id != m.id || p.source != m.source || p.identity != m.identity || p.route != m.route || p.stream != m.stream || p.version != m.version || p.former != m.former {
		w.broke("law 14", "%s is edited, and takes effect as %s", p.name(), m.id)
	}
}

// checkActs holds what persons have done to rows against what is recorded (law 14).
func (w *world) checkActs() {
	recorded := map[string]int{}
	for _, a := range w.acts {
		if recorded[a.on]++; a.who == "" || a.why == "" {
			w.broke("law 14", "%s of %s has no who or no why", a.verb, a.on)
		}
	}
	for _, r := range w.store.inbox {
		if r.acts != recorded[r.key.id] && !r.key.conflict && !w.store.wasRemoved(r.key.id) {
			w.broke("law 14", "persons have let %s run again %d times, and %d are recorded", r.key.id, r.acts, recorded[r.key.id])
		}
	}
}
