package simulator

import (
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/simulator/model"
)

// crash is a crash to come: at the point, after it was passed so often.
type crash struct {
	point faults.Point
	pass  int
}

// diesAt is called at each point; it reports whether the process died there.
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

// die ends the process at once. The store learns of it now or later; until
// then what the process had open stays open.
func (p *process) die(name, format string, args ...any) {
	if p.over {
		return
	}
	p.w.fault(name, format, args...)
	if p.w.main != nil {
		p.w.coverage.Add("fault", "a sender dies")
	}
	p.over, p.died = true, true
	for _, f := range p.flights {
		p.w.abandon(f.tx)
	}
	p.afterLife()
}

// abandon leaves a transaction to the store, which ends it.
func (w *world) abandon(t *model.Transaction) {
	if t == nil || !t.Open || t.Committing {
		return
	}
	linger := time.Duration(0)
	if w.choices.Chance(3) {
		linger = w.choices.Wait(2 * time.Second)
		w.fault("transaction lingers", "%v", linger)
	}
	w.after(linger, func() { w.end(t) })
}

// end rolls t back, if it is open, and wakes who waits for its locks.
func (w *world) end(t *model.Transaction) {
	if t.Open {
		w.closed(t)
	}
}

// closed ends t's locks.
func (w *world) closed(t *model.Transaction) {
	for _, look := range w.store.End(t) {
		w.after(time.Microsecond, look)
	}
}

// afterLife frees the process's lanes and has it started again.
func (p *process) afterLife() {
	w := p.w
	w.seats[p.seat] = nil
	p.check.partAll()
	if p.ending.Idle || p.check.over {
		p.releaseAll()
	}
	for _, l := range w.source.Lanes {
		if l.Owner == p {
			l.Leave()
			w.giveAgain(l)
		}
	}
	switch {
	case w.live != nil && w.over: // it is switched to
		w.live.wrapUp()
	case w.quiet && !w.calm && p.ending.Idle: // whoever begins again would be idle again
	case !w.calm || !w.source.AllSettled() || w.goesOnFor():
		w.after(w.choices.Wait(w.plan.Span/8), func() { w.begin(p.seat) })
	case w.store.AnyWaits(): // a run that ends leaves what is due later
		w.after(200*time.Millisecond, func() { w.begin(p.seat) })
	case len(w.living()) == 0:
		w.finish()
	default:
		w.poke()
		w.wrapUp() // what it did last may have been the last of all
	}
}

// ended is the machine's Done: the process ends in good order.
func (w *world) ended(p *process) {
	p.check.done(p.ending)
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
