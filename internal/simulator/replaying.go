package simulator

import (
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// replaying is what a plan has of replays.
type replaying struct {
	// again: a process of its own reads the history again, in the generation of the live
	// ones. quiet: without effects outside of the store.
	again, quiet bool
	// rebuilds: another reads it into a generation of its own, which is switched to.
	rebuilds bool
	// readers is how many processes try to, one after the other.
	readers int
	// operators replay what was set aside.
	operators int
}

// drawReplays lets persons replay. Whether they do is told by a number that was drawn
// before, so that the other seeds keep their histories.
func (p *plan) drawReplays(c *choices) {
	if p.config.Seed%8 != 3 || p.config.Unmarked || p.config.OneAttempt {
		return
	}
	r := &p.replaying
	if p.config.Inbox {
		r.operators = c.between(1, 3)
	}
	if p.queue || p.calls { // there is no history, or whoever is called cannot be told
		return
	}
	r.quiet, r.readers = c.often(3), c.between(1, 2)
	if p.config.Inbox || p.intends() {
		r.again = true
		return
	}
	r.rebuilds = c.flip()
	if r.again = !r.rebuilds; r.rebuilds {
		p.keep, p.formers = 0, false
	}
}

// replays reports whether somebody replays anything.
func (p *plan) replays() bool { return p.again || p.rebuilds || p.operators > 0 }

// replay is one that is carried out beside the live processes.
type replay struct {
	begun, done bool
	lanes       []*lane
	// foreseen is what the plan says of each place.
	foreseen map[*delivery]prediction
}

// drawHistory takes the beginning of each lane away from the live processes, as a group
// does that begins behind it, or whose offsets somebody has moved on. Much of it has taken
// effect before: the rest is what a replay is for.
func (w *world) drawHistory() {
	if !w.plan.again && !w.plan.rebuilds {
		return
	}
	for _, l := range w.source.lanes {
		n := w.choices.below(1 + len(l.log)/2)
		l.before, l.log = slices.Clone(l.log[:n]), slices.Clone(l.log[n:])
		for i, d := range l.log {
			d.position = i
		}
		for _, d := range l.before {
			w.passedBy[d.message.id] = true
			w.drawFormerEffect(d.message)
		}
	}
	for _, m := range w.messages {
		if w.passedBy[m.id] {
			m.age = 0
		}
	}
}

// drawFormerEffect lets a message have taken effect before the run.
func (w *world) drawFormerEffect(m *message) {
	known := m.refused != "" || m.conduct == saysDuplicate || w.plan.steps > 0 || w.store.judge(m.id, m.print).Kind != store.Fresh || !w.formerlyFree(m)
	if known || m.version > 0 && !w.isNext(m) || !w.choices.flip() {
		return
	}
	print := m.print
	if print.Version != 0 {
		print.Sum[15] = 1
	}
	w.store.markers[m.id] = marker{store.Applied, print, m.age}
	w.write(m, store.Applied)
}

// readsAgain has a replay begin after a while.
func (w *world) readsAgain() {
	if w.plan.again {
		w.after(w.choices.wait(w.plan.span), w.beginReplay)
	}
}

// beginReplay plans a replay of the history up to its present end, and has it begin.
func (w *world) beginReplay() {
	r := &w.replay
	if !w.plan.again || r.begun || w.finished {
		return
	}
	r.begun = true
	for _, l := range slices.Clone(w.source.lanes) {
		again := &lane{id: l.id + "~", of: l}
		for _, d := range l.before {
			again.read(d)
		}
		for _, d := range l.log {
			if d.produced <= w.now {
				again.read(d)
			}
		}
		r.lanes = append(r.lanes, again)
	}
	w.source.lanes = append(w.source.lanes, r.lanes...)
	w.foresee()
	w.acts = append(w.acts, act{verb: "replay", who: "operator", why: "some of it is missing"})
	w.fault("a replay begins", "of %d places", len(r.foreseen))
	for range w.plan.readers {
		w.seats = append(w.seats, nil)
		w.begin(len(w.seats) - 1)
	}
}

// read appends a place of another lane to a lane that is read again.
func (l *lane) read(d *delivery) {
	l.log = append(l.log, &delivery{message: d.message, of: d, lane: l, position: len(l.log)})
}

// reads reports whether the process is one that reads the history again.
func (p *process) reads() bool { return p.seat >= p.w.plan.processes }

// takers are the processes that a lane can be given to.
func (w *world) takers(l *lane) []*process {
	there := w.living()
	if w.plan.again {
		there = slices.DeleteFunc(there, func(p *process) bool { return p.reads() != (l.of != nil) })
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
		if w.store.down {
			p.later(time.Second, p.storePositions)
			return
		}
		for _, l := range w.replay.lanes {
			if l.held && l.owner == p {
				l.store(l.settledUpTo())
			}
		}
		w.checkOffsets()
		w.endReplay()
	})
}

// store stores a position of a lane that is read again.
func (l *lane) store(position int) { l.stored = max(l.stored, position) }

// settledUpTo is the first place that is not settled.
func (l *lane) settledUpTo() int {
	if i := slices.IndexFunc(l.log, func(d *delivery) bool { return !d.settled }); i >= 0 {
		return i
	}
	return len(l.log)
}

// endReplay ends a replay that has come to its end.
func (w *world) endReplay() {
	r := &w.replay
	if r.done || slices.ContainsFunc(r.lanes, func(l *lane) bool { return l.stored < len(l.log) }) {
		return
	}
	r.done = true
	w.note("the replay is done")
	w.wrapUp()
}

// stillReplays reports whether a replay is planned that has not come to its end.
func (w *world) stillReplays() bool { return w.plan.again && !w.replay.done }

// quiet reports whether an entry is of a replay without effects outside of the store, or
// of what such a one has left in the inbox.
func (f *flight) quiet(entry int) bool {
	if c := handOf(f.of.Entries[entry].Item).claim; c != nil {
		return c.row.quiet
	}
	return f.p.reads() && f.p.w.plan.quiet
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
	r.foreseen = map[*delivery]prediction{}
	lanesOf := map[string]int{} // by identity
	for _, l := range r.lanes {
		for id := range l.identities() {
			lanesOf[id]++
		}
	}
	for _, l := range r.lanes {
		first := map[string]semel.Fingerprint{}
		for _, d := range l.log {
			m := d.message
			before, copied := first[m.id]
			if m.refused != "" || m.version > 0 || m.former != "" || lanesOf[m.id] > 1 || copied && before != m.print {
				continue // which of them comes first, or by which rule, nobody knows
			}
			first[m.id] = m.print
			r.foreseen[d] = prediction{w.foreseeOne(m, copied), w.store.changes[m.id], w.store.low}
		}
	}
}

// foreseeOne says what a mark of a message would be answered, by the rule that makes its
// fingerprint.
func (w *world) foreseeOne(m *message, copied bool) map[uint8]store.VerdictKind {
	kinds := map[uint8]store.VerdictKind{}
	for rule := range uint8(2) {
		print := m.print
		if print.Version != 0 {
			print.Version, print.Sum[15] = rule+1, rule+1
		}
		v := w.store.judge(m.id, print)
		switch {
		case v.Kind != store.Fresh:
		case copied:
			v.Kind = store.Seen
		case w.store.old(m):
			v.Kind = store.Old
		}
		kinds[rule+1] = v.Kind
	}
	return kinds
}

// identities are those of a lane's messages.
func (l *lane) identities() map[string]bool {
	all := map[string]bool{}
	for _, d := range l.log {
		all[d.message.id] = true
	}
	return all
}

// act is what is recorded of what a person did.
type act struct{ verb, who, why, on string }

func (a act) String() string { return strconv.Quote(a.who) + " " + a.verb + " " + a.on }

// live is the lane itself, or the one that it reads again.
func (l *lane) live() *lane {
	if l.of != nil {
		return l.of
	}
	return l
}
