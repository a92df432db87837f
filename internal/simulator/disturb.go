package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
	"github.com/semel-go/semel/internal/simulator/trace"
	"github.com/semel-go/semel/store"
)

// disturb does something to the world now and then, until it is calm.
func (w *world) disturb() {
	if w.calm || w.quiet || w.law != nil {
		return
	}
	kind := plan.Trouble(w.choices.Below(int(plan.Troubles)))
	if w.plan.Has[kind] {
		w.trouble(kind)
	}
	w.after(w.choices.Wait(w.plan.Span/8), w.disturb)
}

// trouble makes one fault of a kind; kinds that strike within a call do so
// there.
func (w *world) trouble(kind plan.Trouble) {
	switch kind {
	case plan.TroubleCrash:
		points := faults.Points()
		w.armed = crash{points[w.choices.Below(len(points))], w.choices.Below(3)}
	case plan.TroubleStop:
		w.stop()
	case plan.TroubleRevoke:
		w.revoke(w.someLane())
	case plan.TroubleLose:
		if l := w.someLane(); l.Held {
			w.fault("lane lost", "%s", l.ID)
			w.lose(l)
		}
	case plan.TroubleOutage:
		w.outage()
	case plan.TroubleElsewhere:
		w.elsewhere(w.messages[w.choices.Below(len(w.messages))], 800*time.Millisecond)
	case plan.TroubleTimer:
		if p := w.someone(); p != nil {
			w.fault("early timer", "")
			p.hear(func() { p.feed(machine.Timer{}) })
		}
	case plan.TroublePerson:
		w.person()
	case plan.TroubleDue:
		w.notify()
	case plan.TroubleFreeze:
		w.freeze()
	}
}

func (w *world) someLane() *model.Lane {
	return w.source.Lanes[w.choices.Below(len(w.source.Lanes))]
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
			if l := h.delivery.Lane; l.Held && !l.Revoking && !h.told && !h.stale && f.carries(h) {
				w.fault("lane of a rider revoked", "%s", l.ID)
				w.revoke(l)
				return
			}
		}
	}
}

// carries reports whether the flight has a copy of a delivery of another lane.
func (f *flight) carries(h *handed) bool {
	for i, e := range f.of.Entries {
		if f.message(i).ID == h.delivery.Message.ID && e.Item.Lane != h.item.Lane {
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
	if w.store.Down {
		return
	}
	long := w.choices.Wait(6 * time.Second)
	w.fault("store down", "for %v", long)
	w.takeStore()
	number := w.store.Outages
	w.after(long, func() {
		if w.store.Down && w.store.Outages == number {
			w.note("store up")
			for _, each := range w.worlds() {
				each.store.Down = false
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
	w.store.Down = true
	w.store.Outages++
	for _, p := range w.living() {
		p.check.outage()
		for _, f := range p.flights {
			if f.tx != nil && f.tx.Open && !f.tx.Committing {
				f.tx.Cut = true
				w.abandon(f.tx)
			}
		}
	}
}

// elsewhere lets a second process take up a message of the same identity:
// it marks, works for a while, and ends one way or the other.
func (w *world) elsewhere(m *model.Message, most time.Duration) {
	if w.store.Down || w.closing || m.Refused != "" || m.Conduct == model.SaysDuplicate || w.plan.Config.Unmarked {
		return
	}
	if w.store.Locks[m.ID] != nil || w.store.Judge(m.ID, semel.Fingerprint{}).Kind != store.Fresh || !w.formerlyFree(m) || w.store.Old(m) || m.Age > w.now {
		return
	}
	if m.Former != "" && !w.twoFormers(m) && w.choices.Flip() {
		w.olderRelease(m, most)
		return
	}
	as := []machine.As{machine.AsApplied, machine.AsApplied, machine.AsParked, machine.AsDiscarded}[w.choices.Below(4)]
	if w.plan.Config.Inbox && w.choices.Chance(3) {
		as = machine.AsReceived // as a transaction of the user's accepts it
	}
	if w.plan.Calls || w.plan.Steps > 0 { // nobody else calls, or has the steps
		as = machine.AsReceived
	}
	if w.plan.Rebuilds { // what it sets aside would be missing in one generation
		as = machine.AsApplied
	}
	as, free := w.asElsewhere(m, as)
	if !free {
		return
	}
	t := w.store.Opened(&model.Transaction{Open: true})
	if m.Version > 0 {
		w.store.Hold(m.Stream, t)
	}
	print := m.Print
	if print.Version != 0 {
		print.Version, print.Sum[15] = 1, 1
	}
	w.store.Write(t, model.Mark{ID: m.ID, As: as, Print: print, At: w.now})
	if m.Former != "" {
		w.store.Write(t, model.Mark{ID: m.Former, As: as, Print: print, At: w.now})
	}
	long, commits := w.choices.Wait(most), w.choices.Often(3)
	w.fault("copy elsewhere", "%s %s for %v, commits: %v", m.Name(), trace.Word(trace.AsNames[:], as), long, commits)
	w.after(long, func() {
		if !t.Open {
			return
		}
		if commits {
			w.commitElsewhere(t, m, as)
		}
		w.end(t)
	})
}

func (w *world) commitElsewhere(t *model.Transaction, m *model.Message, as machine.As) {
	var rows []machine.Row
	if as == machine.AsApplied {
		if !w.intendElsewhere(t, m) {
			return
		}
		t.Effects = append(t.Effects, model.Effect{Message: m})
	} else {
		rows = []machine.Row{{As: as}}
	}
	w.store.Apply(t, nil, rows, func(r *machine.Row) *model.Row {
		is := &model.Row{Key: model.RowKey{ID: m.ID}, As: r.As, Message: m, Print: t.Marks[0].Print, Changed: w.now}
		is.Dates(w.at(), w.dueElsewhere(r.As))
		return is
	})
	w.receive(t)
	if as == machine.AsApplied || as == machine.AsDiscarded {
		w.step(m, t.Marks[0].Print)
	}
	w.notify()
	w.note("committed elsewhere: %s %s", m.Name(), trace.Word(trace.AsNames[:], as))
}

// drawPast gives some identities a marker from before the run.
func (w *world) drawPast() {
	past := []store.Outcome{store.Applied, store.Parked, model.Newer, store.DeadLettered, store.Discarded}
	if w.plan.Config.Inbox {
		past = append(past, store.Waiting)
	}
	rate := 40
	if w.plan.Rebuilds { // the newer release would know of generations, too
		past = slices.DeleteFunc(past, func(o store.Outcome) bool { return o == model.Newer })
	}
	if w.plan.Streams > 0 { // those that follow in a stream must not pass one that waits
		rate, past = 12, append(past, model.Newer, model.Newer, model.Newer, model.Newer, model.Newer, model.Newer)
	}
	for _, m := range w.messages {
		if m.Refused != "" || m.Conduct == model.SaysDuplicate || !w.choices.Chance(rate) || w.store.Judge(m.ID, m.Print).Kind != store.Fresh {
			continue
		}
		v := past[w.choices.Below(len(past))]
		if v == store.Applied && m.Version > 0 && !w.isNext(m) {
			continue
		}
		print := m.Print
		if print.Version != 0 {
			print.Sum[15] = 1
		}
		w.store.Markers[m.ID] = model.Marker{Outcome: v, Print: print, At: m.Age}
		if v == model.Newer {
			w.after(w.choices.Wait(longestNewer), func() { w.endNewer(m) })
			continue
		}
		w.write(m, v)
	}
}
