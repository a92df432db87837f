package simulator

import (
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/simulator/plan"
)

// disturb draws whether to cause a fault. In the calm phase, disturb causes no fault.
func (w *world) disturb() {
	if w.calm || w.quiet || w.law != nil {
		return
	}
	kind := plan.Trouble(w.choices.Below(int(plan.Troubles)))
	if w.Plan.Has[kind] {
		w.trouble(kind)
	}
	w.schedule(w.choices.Wait(w.Plan.Span/8), w.disturb)
}

// trouble causes one fault of the given kind. Faults of a single call are drawn during that call.
func (w *world) trouble(kind plan.Trouble) {
	switch kind {
	case plan.TroubleCrash:
		points := faults.Points()
		w.armed = crash{points[w.choices.Below(len(points))], w.choices.Below(3)}
	case plan.TroubleStop:
		w.stopProcess()
	case plan.TroubleRevoke:
		w.revoke(w.someLane())
	case plan.TroubleLose:
		if l := w.someLane(); l.Held {
			w.recordFault("lane lost", "%s", l.ID)
			w.lose(l)
		}
	case plan.TroubleOutage:
		w.outage()
	case plan.TroubleElsewhere:
		w.elsewhere(w.Messages[w.choices.Below(len(w.Messages))], 800*time.Millisecond)
	case plan.TroubleTimer:
		if p := w.someone(); p != nil {
			w.recordFault("early timer", "")
			p.runWhenThawed(func() { p.feed(machine.Timer{}) })
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
	return w.Source.Lanes[w.choices.Below(len(w.Source.Lanes))]
}

// If a delivery waits for a copy in another lane, riders revokes the lane of that delivery.
func (w *world) riders() {
	p := w.someone()
	if p == nil {
		return
	}
	for _, f := range p.flights {
		for _, h := range p.check.hands {
			if l := h.delivery.Lane; l.Held && !l.Revoking && !h.settled && !h.stale && f.carries(h) {
				w.recordFault("lane of a rider revoked", "%s", l.ID)
				w.revoke(l)
				return
			}
		}
	}
}

// carries reports whether the batch contains a copy of a delivery from another lane.
func (f *flight) carries(h *itemState) bool {
	for i, e := range f.of.Entries {
		if f.message(i).ID == h.delivery.Message.ID && e.Item.Lane != h.item.Lane {
			return true
		}
	}
	return false
}

// stopProcess of world stops a process normally; the process starts again later.
func (w *world) stopProcess() {
	if p := w.someone(); p != nil && !p.check.stopping {
		w.recordFault("stop", "")
		p.runWhenThawed(p.sendStop)
	}
}

// sendStop of process sends a Stop to the machine, but only once.
func (p *process) sendStop() {
	if !p.check.stopping {
		p.feed(machine.Stop{})
	}
}

// outage takes the store down for some time. Connections break at once or at their next use.
func (w *world) outage() {
	if w.store.Down {
		return
	}
	long := w.choices.Wait(6 * time.Second)
	w.recordFault("store down", "for %v", long)
	w.takeStore()
	number := w.store.Outages
	w.schedule(long, func() {
		if w.store.Down && w.store.Outages == number {
			w.logLine("store up")
			for _, each := range w.worlds() {
				each.store.Down = false
			}
		}
	})
}

// takeStore takes the store down, for the main consumer and for the sender of intents.
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

// crash is a planned crash: at a point, after that point was passed a number of times.
type crash struct {
	point faults.Point
	pass  int
}

// diesAt is called at each point. The result says whether the process died at the point.
func (p *process) diesAt(point faults.Point) bool {
	w := p.w
	if w.armed.point != point || w.calm || w.quiet {
		return false
	}
	if w.armed.pass--; w.armed.pass >= 0 {
		return false
	}
	w.armed = crash{}
	w.coverage.Add("crash at", string(point))
	p.die("crash", "at %s", point)
	return true
}

// die ends the process immediately. The store notices the death now or later. Until the store notices, the transactions
// of the process stay open.
func (p *process) die(name, format string, args ...any) {
	if p.over {
		return
	}
	p.w.recordFault(name, format, args...)
	if p.w.main != nil {
		p.w.coverage.Add("fault", "a sender dies")
	}
	p.over, p.died = true, true
	for _, f := range p.flights {
		p.w.abandon(f.tx)
	}
	p.afterLife()
}

// abandon leaves an open transaction to the store, which ends it now or later.
func (w *world) abandon(t *model.Transaction) {
	if t == nil || !t.Open || t.Committing {
		return
	}
	linger := time.Duration(0)
	if w.choices.Chance(3) {
		linger = w.choices.Wait(2 * time.Second)
		w.recordFault("transaction lingers", "%v", linger)
	}
	w.schedule(linger, func() { w.end(t) })
}

// end rolls back t if t is open, and wakes the transactions that wait for its locks.
func (w *world) end(t *model.Transaction) {
	if t.Open {
		w.releaseLocks(t)
	}
}

// releaseLocks releases the locks of t.
func (w *world) releaseLocks(t *model.Transaction) {
	for _, look := range w.store.End(t) {
		w.schedule(time.Microsecond, look)
	}
}

// afterLife gives the lanes of an ended process to other processes, and schedules the start of a new process.
func (p *process) afterLife() {
	w := p.w
	w.seats[p.seat] = nil
	p.check.dropAllDeliveries()
	if p.ending.Idle || p.check.over {
		p.releaseAll()
	}
	for _, l := range w.Source.Lanes {
		if l.Owner == p {
			l.Leave()
			w.giveAgain(l)
		}
	}
	switch {
	case w.live != nil && w.over: // the rebuild has been switched on
		w.live.wrapUp()
	case w.quiet && !w.calm && p.ending.Idle: // a new process would be idle again
	case !w.calm || !w.Source.AllSettled() || w.goesOnFor():
		w.schedule(w.choices.Wait(w.Plan.Span/8), func() { w.begin(p.seat) })
	case w.store.AnyWaits(): // a process that ends idle leaves rows that can be claimed later
		w.schedule(200*time.Millisecond, func() { w.begin(p.seat) })
	case len(w.living()) == 0:
		w.finish()
	default:
		w.poke()
		w.wrapUp() // the action of the process may have been the last action of the run
	}
}

// handleDone handles the machine's Done, with which the process ends normally.
func (w *world) handleDone(p *process) {
	p.check.checkDone(p.ending)
	if p.ending.Halted {
		w.halts++
	}
	p.over = true
	for _, f := range p.flights {
		w.abandon(f.tx)
	}
	if w.law == nil {
		p.afterLife()
	}
}

// freeze stops a process, as SIGSTOP or a long garbage collection does. Other processes get the lanes of the frozen
// process, and the store ends its transactions. After the thaw, the process first continues its old work, and learns
// later that its lanes and transactions are lost.
func (w *world) freeze() {
	if p := w.someone(); p != nil {
		p.freeze()
	}
}

func (p *process) freeze() {
	if p.frozen || p.over {
		return
	}
	w := p.w
	p.frozen = true
	long, session, idle := w.choices.Wait(20*time.Second), w.choices.Wait(5*time.Second), w.choices.Wait(5*time.Second)
	if w.main != nil {
		w.coverage.Add("fault", "a sender is frozen")
	}
	w.recordFault("process frozen", "for %v, a member for %v", long, session)
	w.schedule(min(session, long), func() {
		if !p.frozen || p.over || long < session {
			return
		}
		for _, l := range w.Source.Lanes {
			if l.Held && l.Owner == p {
				w.recordFault("lane of a frozen process lost", "%s", l.ID)
				w.lose(l)
			}
		}
	})
	w.schedule(min(idle, long), func() {
		if p.frozen && !p.over && idle <= long {
			w.endIdle(p)
		}
	})
	w.schedule(long, p.thaw)
}

// endIdle ends the transactions of a process that were idle for too long.
func (w *world) endIdle(p *process) {
	for _, f := range p.flights {
		if f.tx != nil && f.tx.Open && !f.tx.Committing {
			w.recordFault("idle transaction ended", "f%d", f.of.Number)
			f.tx.Cut = true
			w.end(f.tx)
		}
	}
}

// thaw resumes a frozen process. The process gets, in order, the events that happened while it was frozen.
func (p *process) thaw() {
	if !p.frozen {
		return
	}
	p.w.logLine("life goes on after a freeze, with %d occurrences", len(p.late))
	for i := 0; i < len(p.late) && !p.over; i++ {
		p.late[i]()
	}
	p.frozen, p.late = false, nil
}
