package simulator

import (
	"time"
)

// Point names a step between fetch and settle, as the library's does.
type Point string

// The points, in the order a message passes them.
const (
	AfterFetch      Point = "AfterFetch"
	AfterMark       Point = "AfterMark"
	AfterEffect     Point = "AfterEffect"
	BeforeCommit    Point = "BeforeCommit"
	CommitReplyLost Point = "CommitReplyLost"
	AfterCommit     Point = "AfterCommit"
	BeforeSettle    Point = "BeforeSettle"
	AfterSettle     Point = "AfterSettle"
)

// points are all of them, in order.
var points = [...]Point{AfterFetch, AfterMark, AfterEffect, BeforeCommit, CommitReplyLost, AfterCommit, BeforeSettle, AfterSettle}

// crash is a crash to come: at the point, after it was passed so often.
type crash struct {
	point Point
	pass  int
}

// at is called at each point; it reports whether the process died there.
func (w *world) at(p Point) bool {
	if w.armed.point != p || w.calm {
		return false
	}
	if w.armed.pass--; w.armed.pass >= 0 {
		return false
	}
	w.armed = crash{}
	w.coverage.add("crash at", string(p))
	w.die("crash", "at %s", p)
	return true
}

// die ends the process at once. The store learns of it now or later; until
// then what the process had open stays open.
func (w *world) die(name, format string, args ...any) {
	p := w.process
	if p == nil || p.over {
		return
	}
	w.fault(name, format, args...)
	p.over = true
	for _, f := range p.flights {
		w.abandon(f.tx)
	}
	w.afterLife()
}

// abandon leaves a transaction to the store, which ends it.
func (w *world) abandon(t *transaction) {
	if t == nil || !t.open || t.committing {
		return
	}
	linger := time.Duration(0)
	if w.choices.chance(3) {
		linger = w.choices.wait(2 * time.Second)
		w.fault("transaction lingers", "%v", linger)
	}
	w.after(linger, func() { w.end(t) })
}

// end rolls t back, if it is open, and wakes who waits for its locks.
func (w *world) end(t *transaction) {
	if t.open {
		w.closed(t)
	}
}

// closed ends t's locks.
func (w *world) closed(t *transaction) {
	for _, look := range w.store.end(t) {
		w.after(time.Microsecond, look)
	}
}

// afterLife frees the lanes and has the process started again.
func (w *world) afterLife() {
	w.process = nil
	w.source.ended = false
	for _, l := range w.source.lanes {
		l.leave()
	}
	if w.calm && w.source.allSettled() {
		w.finish()
		return
	}
	w.after(w.choices.wait(w.plan.span/8), w.begin)
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
		w.afterLife()
	}
}
