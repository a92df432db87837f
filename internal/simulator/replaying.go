package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// replay is a replay that runs at the same time as the live processes.
type replay struct {
	begun, done bool
	lanes       []*model.Lane
	// foreseen has the prediction for each delivery.
	foreseen map[*model.Delivery]prediction
}

// drawHistory hides the beginning of each lane from the live processes. The live processes act like a consumer group
// that starts later, or whose offsets were moved. Many of the hidden messages were applied before; a replay applies the
// other hidden messages.
func (w *world) drawHistory() {
	if !w.Plan.Again && !w.Plan.Rebuilds {
		return
	}
	for _, l := range w.Source.Lanes {
		n := w.choices.Below(1 + len(l.Log)/2)
		l.Before, l.Log = slices.Clone(l.Log[:n]), slices.Clone(l.Log[n:])
		for i, d := range l.Log {
			d.Position = i
		}
		for _, d := range l.Before {
			w.passedBy[d.Message.ID] = true
			w.drawFormerEffect(d.Message)
		}
	}
	for _, m := range w.Messages {
		if w.passedBy[m.ID] {
			m.Age = 0
		}
	}
}

// drawFormerEffect draws whether a message was applied before the run.
func (w *world) drawFormerEffect(m *model.Message) {
	known := m.Refused != "" || m.Conduct == model.SaysDuplicate || w.Plan.Steps > 0 || w.store.Judge(m.ID, m.Print).Kind != store.Fresh || !w.formerlyFree(m)
	if known || m.Version > 0 && !w.isNext(m) || !w.choices.Flip() {
		return
	}
	print := m.Print
	if print.Version != 0 {
		print.Sum[15] = 1
	}
	w.store.Markers[m.ID] = model.Marker{Outcome: store.Applied, Print: print, At: m.Age}
	w.writeOutcome(m, store.Applied)
}

// readsAgain starts a replay after some time.
func (w *world) readsAgain() {
	if w.Plan.Again {
		w.schedule(w.choices.Wait(w.Plan.Span), w.beginReplay)
	}
}

// beginReplay plans a replay of the history, up to its current end, and starts the replay.
func (w *world) beginReplay() {
	r := &w.replay
	if !w.Plan.Again || r.begun || w.finished {
		return
	}
	r.begun = true
	for _, l := range slices.Clone(w.Source.Lanes) {
		again := &model.Lane{ID: l.ID + "~", Of: l}
		for _, d := range l.Before {
			again.Read(d)
		}
		for _, d := range l.Log {
			if d.Produced <= w.now {
				again.Read(d)
			}
		}
		r.lanes = append(r.lanes, again)
	}
	w.Source.Lanes = append(w.Source.Lanes, r.lanes...)
	w.foresee()
	w.acts = append(w.acts, act{verb: "replay", who: "operator", why: "some of it is missing"})
	w.recordFault("a replay begins", "of %d places", len(r.foreseen))
	for range w.Plan.Readers {
		w.seats = append(w.seats, nil)
		w.begin(len(w.seats) - 1)
	}
}

// reads reports whether the process runs a replay.
func (p *process) reads() bool { return p.seat >= p.w.Plan.Processes }

// takers returns the processes that may get a lane.
func (w *world) takers(l *model.Lane) []*process {
	there := w.living()
	if w.Plan.Again {
		there = slices.DeleteFunc(there, func(p *process) bool { return p.reads() != (l.Of != nil) })
	}
	return there
}

// storePositions stores, after a short time, the positions up to which the lanes of a replay are acked. The next
// process of the replay continues at the stored positions.
func (p *process) storePositions() {
	if !p.reads() {
		return
	}
	w := p.w
	p.scheduleSoon(func() {
		if w.store.Down {
			p.schedule(time.Second, p.storePositions)
			return
		}
		for _, l := range w.replay.lanes {
			if l.Held && l.Owner == p {
				l.Store(l.SettledUpTo())
			}
		}
		w.checkOffsets()
		w.endReplay()
	})
}

// endReplay ends a replay that has read all its messages.
func (w *world) endReplay() {
	r := &w.replay
	if r.done || slices.ContainsFunc(r.lanes, func(l *model.Lane) bool { return l.Stored < len(l.Log) }) {
		return
	}
	r.done = true
	w.logLine("the replay is done")
	w.wrapUp()
}

// stillReplays reports whether a planned replay has not ended yet.
func (w *world) stillReplays() bool { return w.Plan.Again && !w.replay.done }

// isReplayWithoutEffects reports whether an entry belongs to a replay without effects, also as a row that a replay
// without effects wrote.
func (f *flight) isReplayWithoutEffects(entry int) bool {
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil {
		return c.Row.Quiet
	}
	return f.p.reads() && f.p.w.Plan.Quiet
}

// prediction is the expected answer of the store (new, duplicate, conflict) for a delivery of a replay. The prediction
// is valid as long as no other process changes the identity.
type prediction struct {
	// kinds contains the expected answers of the store, by version of the fingerprint.
	kinds map[uint8]store.VerdictKind
	// changes and low are the values of Changes and Low of the store when the replay was planned.
	changes int
	low     time.Duration
}

// foresee predicts the store's answer for each delivery of the replay.
func (w *world) foresee() {
	r := &w.replay
	r.foreseen = map[*model.Delivery]prediction{}
	lanesOf := map[string]int{} // number of lanes by identity
	for _, l := range r.lanes {
		for id := range l.Identities() {
			lanesOf[id]++
		}
	}
	for _, l := range r.lanes {
		first := map[string]semel.Fingerprint{}
		for _, d := range l.Log {
			m := d.Message
			before, copied := first[m.ID]
			if m.Refused != "" || m.Version > 0 || m.Former != "" || lanesOf[m.ID] > 1 || copied && before != m.Print {
				continue // which copy comes first, and with which version of the fingerprint, is unknown
			}
			first[m.ID] = m.Print
			r.foreseen[d] = prediction{w.foreseeOne(m, copied), w.store.Changes[m.ID], w.store.Low}
		}
	}
}

// foreseeOne predicts the store's answers for a message, by version of the fingerprint.
func (w *world) foreseeOne(m *model.Message, copied bool) map[uint8]store.VerdictKind {
	kinds := map[uint8]store.VerdictKind{}
	for rule := range uint8(2) {
		print := m.Print
		if print.Version != 0 {
			print.Version, print.Sum[15] = rule+1, rule+1
		}
		v := w.store.Judge(m.ID, print)
		switch {
		case v.Kind != store.Fresh:
		case copied:
			v.Kind = store.Seen
		case w.store.Old(m):
			v.Kind = store.Old
		}
		kinds[rule+1] = v.Kind
	}
	return kinds
}

// checkOffsets checks that only the live processes move their offsets (trap T45).
func (w *world) checkOffsets() {
	for _, l := range w.Source.Lanes {
		if l.Of != nil {
			continue
		}
		w.arose("trap T45")
		if i := slices.IndexFunc(l.Log, func(d *model.Delivery) bool { return d.Settled && !d.Acknowledged }); i >= 0 {
			w.broke("trap T45", "%s/%d is settled, and no live process has settled it", l.ID, i)
		}
	}
}

// asForeseen checks that the store gives a replay the predicted answers, unless a live process has changed the identity
// after the prediction (G4).
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

// keepsIdentity checks that a replay applies a message with the identity that the producer gave to the message (law
// 14).
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
