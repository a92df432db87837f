package simulator

import (
	"slices"

	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// checkOffsets checks that nobody but the live processes moves their places in the log
// (trap T45).
func (w *world) checkOffsets() {
	for _, l := range w.source.Lanes {
		if l.Of != nil {
			continue
		}
		w.arose("trap T45")
		if i := slices.IndexFunc(l.Log, func(d *model.Delivery) bool { return d.Settled && !d.Acknowledged }); i >= 0 {
			w.broke("trap T45", "%s/%d is settled, and no live process has settled it", l.ID, i)
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
		if m := h.delivery.Message; foreseen.changes == w.store.Changes[m.ID] && foreseen.low == w.store.Low {
			w.arose("G4")
			w.coverage.Add("fault", "a replay is answered as foreseen: "+v.String())
			if v != foreseen.kinds[f.p.version] {
				w.broke("G4", "%s is %s, and the plan said that it would be %s", m.Name(), v.String(), foreseen.kinds[f.p.version].String())
			}
		}
	}
}

// keepsIdentity checks that what takes effect of a replay is the message that the producer
// sent (law 14).
func (c *checker) keepsIdentity(f *flight, x model.Effect) {
	w, m, number := c.w, x.Message, x.Message.Number
	if first, before := w.tookBy[number]; before && first != m.ID {
		w.broke("law 14", "m%d takes effect as %s, and did as %s", number, m.ID, first)
	}
	w.tookBy[number] = m.ID
	w.sameAsOriginal(m)
	w.inKeyOrder(m, handOf(f.of.Entries[x.Entry].Item).claim)
	of := handOf(f.of.Entries[x.Entry].Item).delivery.Of
	if of == nil {
		return
	}
	w.arose("law 14")
	w.coverage.Add("fault", "what was missing takes effect in a replay")
	if p := of.Message; p.ID != m.ID || p.Source != m.Source || p.Identity != m.Identity || p.Route != m.Route || p.Stream != m.Stream || p.Version != m.Version || p.Print != m.Print {
		w.broke("law 14", "%s takes effect in a replay as another: %s", p.Name(), m.ID)
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
func (w *world) checkEdit(r *model.Row) {
	w.arose("G5")
	if w.store.Effects[r.Key.ID] > 0 {
		w.broke("G5", "%s is edited, and has taken effect", r.Key.ID)
	}
}

// inKeyOrder checks that what a person lets run again takes effect behind what was made due
// before it, of the same key (law 8).
func (w *world) inKeyOrder(m *model.Message, claim *model.Claim) {
	if claim == nil || claim.Row.WasMade == 0 {
		return
	}
	w.coverage.Add("fault", "what a person has made due takes effect")
	for _, r := range w.store.Inbox {
		if r.Made > 0 && r.Made < claim.Row.WasMade && r.Waits() && r.Message.Route == m.Route && r != claim.Row {
			w.broke("law 8", "%s takes effect again before %s, which was made due before it", m.Name(), r.Key.ID)
		}
	}
}

// sameAsOriginal checks that an edited message is the original in all but its content
// (law 14).
func (w *world) sameAsOriginal(m *model.Message) {
	p := m.Edited
	if p == nil {
		return
	}
	w.coverage.Add("fault", "what was edited takes effect")
	if p.ID != m.ID || p.Source != m.Source || p.Identity != m.Identity || p.Route != m.Route || p.Stream != m.Stream || p.Version != m.Version || p.Former != m.Former {
		w.broke("law 14", "%s is edited, and takes effect as %s", p.Name(), m.ID)
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
	for _, r := range w.store.Inbox {
		if r.Acts != recorded[r.Key.ID] && !r.Key.Conflict && !w.store.WasRemoved(r.Key.ID) {
			w.broke("law 14", "persons have let %s run again %d times, and %d are recorded", r.Key.ID, r.Acts, recorded[r.Key.ID])
		}
	}
}
