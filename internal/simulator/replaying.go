package simulator

import (
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// replay is one that is carried out beside the live processes.
type replay struct {
	begun, done bool
	lanes       []*model.Lane
	// foreseen is what the plan says of each place.
	foreseen map[*model.Delivery]prediction
}

// drawHistory takes the beginning of each lane away from the live processes, as a group
// does that begins behind it, or whose offsets somebody has moved on. Much of it has taken
// effect before: the rest is what a replay is for.
func (w *world) drawHistory() {
	if !w.plan.Again && !w.plan.Rebuilds {
		return
	}
	for _, l := range w.source.Lanes {
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
	for _, m := range w.messages {
		if w.passedBy[m.ID] {
			m.Age = 0
		}
	}
}

// drawFormerEffect lets a message have taken effect before the run.
func (w *world) drawFormerEffect(m *model.Message) {
	known := m.Refused != "" || m.Conduct == model.SaysDuplicate || w.plan.Steps > 0 || w.store.Judge(m.ID, m.Print).Kind != store.Fresh || !w.formerlyFree(m)
	if known || m.Version > 0 && !w.isNext(m) || !w.choices.Flip() {
		return
	}
	print := m.Print
	if print.Version != 0 {
		print.Sum[15] = 1
	}
	w.store.Markers[m.ID] = model.Marker{Outcome: store.Applied, Print: print, At: m.Age}
	w.write(m, store.Applied)
}

// readsAgain has a replay begin after a while.
func (w *world) readsAgain() {
	if w.plan.Again {
		w.after(w.choices.Wait(w.plan.Span), w.beginReplay)
	}
}

// beginReplay plans a replay of the history up to its present end, and has it begin.
func (w *world) beginReplay() {
	r := &w.replay
	if !w.plan.Again || r.begun || w.finished {
		return
	}
	r.begun = true
	for _, l := range slices.Clone(w.source.Lanes) {
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
	w.source.Lanes = append(w.source.Lanes, r.lanes...)
	w.foresee()
	w.acts = append(w.acts, act{verb: "replay", who: "operator", why: "some of it is missing"})
	w.fault("a replay begins", "of %d places", len(r.foreseen))
	for range w.plan.Readers {
		w.seats = append(w.seats, nil)
		w.begin(len(w.seats) - 1)
	}
}

// reads reports whether the process is one that reads the history again.
func (p *process) reads() bool { return p.seat >= p.w.plan.Processes }

// takers are the processes that a lane can be given to.
func (w *world) takers(l *model.Lane) []*process {
	there := w.living()
	if w.plan.Again {
		there = slices.DeleteFunc(there, func(p *process) bool { return p.reads() != (l.Of != nil) })
	}
	return there
}

// storePositions stores how far the lanes are settled that a process reads again, a little
// later: who goes on after it begins there.
func (p *process) storePositions() {
	if !p.reads() {
		return
	}
	w := p.w
	p.soon(func() {
		if w.store.Down {
			p.later(time.Second, p.storePositions)
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

// endReplay ends a replay that has come to its end.
func (w *world) endReplay() {
	r := &w.replay
	if r.done || slices.ContainsFunc(r.lanes, func(l *model.Lane) bool { return l.Stored < len(l.Log) }) {
		return
	}
	r.done = true
	w.note("the replay is done")
	w.wrapUp()
}

// stillReplays reports whether a replay is planned that has not come to its end.
func (w *world) stillReplays() bool { return w.plan.Again && !w.replay.done }

// quiet reports whether an entry is of a replay without effects outside of the store, or
// of what such a one has left in the inbox.
func (f *flight) quiet(entry int) bool {
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil {
		return c.Row.Quiet
	}
	return f.p.reads() && f.p.w.plan.Quiet
}

// prediction is what a plan says of a place: what a mark will be answered, as long as
// nobody else changes what is known of the identity.
type prediction struct {
	// kinds are by the rule that makes the fingerprints.
	kinds map[uint8]store.VerdictKind
	// changes and low are as the plan found them.
	changes int
	low     time.Duration
}

// foresee says of each place that will be read what would become of it.
func (w *world) foresee() {
	r := &w.replay
	r.foreseen = map[*model.Delivery]prediction{}
	lanesOf := map[string]int{} // by identity
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
				continue // which of them comes first, or by which rule, nobody knows
			}
			first[m.ID] = m.Print
			r.foreseen[d] = prediction{w.foreseeOne(m, copied), w.store.Changes[m.ID], w.store.Low}
		}
	}
}

// foreseeOne says what a mark of a message would be answered, by the rule that makes its
// fingerprint.
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

// act is what is recorded of what a person did.
type act struct{ verb, who, why, on string }

func (a act) String() string { return strconv.Quote(a.who) + " " + a.verb + " " + a.on }
