package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// disturb does something to the world now and then, until it is calm.
func (w *world) disturb() {
	if w.calm || w.quiet || w.law != nil {
		return
	}
	kind := trouble(w.choices.below(int(troubles)))
	if w.plan.has[kind] {
		w.trouble(kind)
	}
	w.after(w.choices.wait(w.plan.span/8), w.disturb)
}

// trouble makes one fault of a kind; kinds that strike within a call do so
// there.
func (w *world) trouble(kind trouble) {
	switch kind {
	case troubleCrash:
		points := faults.Points()
		w.armed = crash{points[w.choices.below(len(points))], w.choices.below(3)}
	case troubleStop:
		w.stop()
	case troubleRevoke:
		w.revoke(w.someLane())
	case troubleLose:
		if l := w.someLane(); l.held {
			w.fault("lane lost", "%s", l.id)
			w.lose(l)
		}
	case troubleOutage:
		w.outage()
	case troubleElsewhere:
		w.elsewhere(w.messages[w.choices.below(len(w.messages))], 800*time.Millisecond)
	case troubleTimer:
		if p := w.someone(); p != nil {
			w.fault("early timer", "")
			p.hear(func() { p.feed(machine.Timer{}) })
		}
	case troublePerson:
		w.person()
	case troubleDue:
		w.notify()
	case troubleFreeze:
		w.freeze()
	}
}

func (w *world) someLane() *lane {
	return w.source.lanes[w.choices.below(len(w.source.lanes))]
}

// riders revokes the lane of a delivery that waits for a copy under way in another
// lane, if there is one.
func (w *world) riders() {
	p := w.someone()
	if p == nil {
		return
	}
	for _, f := range p.flights {
		for _, h := range p.check.hands {
			if l := h.delivery.lane; l.held && !l.revoking && !h.told && !h.stale && f.carries(h) {
				w.fault("lane of a rider revoked", "%s", l.id)
				w.revoke(l)
				return
			}
		}
	}
}

// carries reports whether the flight has a copy of a delivery of another lane.
func (f *flight) carries(h *handed) bool {
	for i, e := range f.of.Entries {
		if f.message(i).id == h.delivery.message.id && e.Item.Lane != h.item.Lane {
			return true
		}
	}
	return false
}

// stop drains a process, which is started again.
func (w *world) stop() {
	if p := w.someone(); p != nil && !p.check.stopping {
		w.fault("stop", "")
		p.hear(p.stop)
	}
}

// stop tells the machine to drain, once.
func (p *process) stop() {
	if !p.check.stopping {
		p.feed(machine.Stop{})
	}
}

// outage takes the store away for a while. Connections break now or with
// their next word.
func (w *world) outage() {
	if w.store.down {
		return
	}
	long := w.choices.wait(6 * time.Second)
	w.fault("store down", "for %v", long)
	w.takeStore()
	number := w.store.outages
	w.after(long, func() {
		if w.store.down && w.store.outages == number {
			w.note("store up")
			for _, each := range w.worlds() {
				each.store.down = false
			}
		}
	})
}

// takeStore takes the store away, which a sender shares.
func (w *world) takeStore() {
	for _, each := range w.worlds() {
		each.takeOne()
	}
}

func (w *world) takeOne() {
	w.store.down = true
	w.store.outages++
	for _, p := range w.living() {
		p.check.outage()
		for _, f := range p.flights {
			if f.tx != nil && f.tx.open && !f.tx.committing {
				f.tx.cut = true
				w.abandon(f.tx)
			}
		}
	}
}

// elsewhere lets a second process take up a message of the same identity:
// it marks, works for a while, and ends one way or the other.
func (w *world) elsewhere(m *message, most time.Duration) {
	if w.store.down || w.closing || m.refused != "" || m.conduct == saysDuplicate || w.plan.config.Unmarked {
		return
	}
	if w.store.locks[m.id] != nil || w.store.judge(m.id, semel.Fingerprint{}).Kind != store.Fresh || !w.formerlyFree(m) || w.store.old(m) || m.age > w.now {
		return
	}
	if m.former != "" && !w.twoFormers(m) && w.choices.flip() {
		w.olderRelease(m, most)
		return
	}
	as := []machine.As{machine.AsApplied, machine.AsApplied, machine.AsParked, machine.AsDiscarded}[w.choices.below(4)]
	if w.plan.config.Inbox && w.choices.chance(3) {
		as = machine.AsReceived // as a transaction of the user's accepts it
	}
	if w.plan.calls || w.plan.steps > 0 { // nobody else calls, or has the steps
		as = machine.AsReceived
	}
	if w.plan.rebuilds { // what it sets aside would be missing in one generation
		as = machine.AsApplied
	}
	as, free := w.asElsewhere(m, as)
	if !free {
		return
	}
	t := w.store.opened(&transaction{open: true})
	if m.version > 0 {
		w.store.hold(m.stream, t)
	}
	print := m.print
	if print.Version != 0 {
		print.Version, print.Sum[15] = 1, 1
	}
	w.store.write(t, mark{id: m.id, as: as, print: print, at: w.now})
	if m.former != "" {
		w.store.write(t, mark{id: m.former, as: as, print: print, at: w.now})
	}
	long, commits := w.choices.wait(most), w.choices.often(3)
	w.fault("copy elsewhere", "%s %s for %v, commits: %v", m.name(), word(asNames[:], as), long, commits)
	w.after(long, func() {
		if !t.open {
			return
		}
		if commits {
			w.commitElsewhere(t, m, as)
		}
		w.end(t)
	})
}

func (w *world) commitElsewhere(t *transaction, m *message, as machine.As) {
	var rows []machine.Row
	if as == machine.AsApplied {
		if !w.intendElsewhere(t, m) {
			return
		}
		t.effects = append(t.effects, effect{message: m})
	} else {
		rows = []machine.Row{{As: as}}
	}
	w.store.apply(t, nil, rows, func(r *machine.Row) *row {
		is := &row{key: rowKey{id: m.id}, as: r.As, message: m, print: t.marks[0].print, changed: w.now}
		is.dates(w.at(), w.dueElsewhere(r.As))
		return is
	})
	w.receive(t)
	if as == machine.AsApplied || as == machine.AsDiscarded {
		w.step(m, t.marks[0].print)
	}
	w.notify()
	w.note("committed elsewhere: %s %s", m.name(), word(asNames[:], as))
}

// drawPast gives some identities a marker from before the run.
func (w *world) drawPast() {
	past := []store.Outcome{store.Applied, store.Parked, newer, store.DeadLettered, store.Discarded}
	if w.plan.config.Inbox {
		past = append(past, store.Waiting)
	}
	rate := 40
	if w.plan.rebuilds { // the newer release would know of generations, too
		past = slices.DeleteFunc(past, func(o store.Outcome) bool { return o == newer })
	}
	if w.plan.streams > 0 { // those that follow in a stream must not pass one that waits
		rate, past = 12, append(past, newer, newer, newer, newer, newer, newer)
	}
	for _, m := range w.messages {
		if m.refused != "" || m.conduct == saysDuplicate || !w.choices.chance(rate) || w.store.judge(m.id, m.print).Kind != store.Fresh {
			continue
		}
		v := past[w.choices.below(len(past))]
		if v == store.Applied && m.version > 0 && !w.isNext(m) {
			continue
		}
		print := m.print
		if print.Version != 0 {
			print.Sum[15] = 1
		}
		w.store.markers[m.id] = marker{v, print, m.age}
		if v == newer {
			w.after(w.choices.wait(longestNewer), func() { w.endNewer(m) })
			continue
		}
		w.write(m, v)
	}
}
