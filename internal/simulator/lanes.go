package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// give hands a lane that is free to the process.
func (w *world) give(l *lane) {
	if w.process == nil || w.process.over || l.held {
		return
	}
	l.give()
	w.process.check.given(l.current())
	w.process.feed(machine.Given{Lane: l.current()})
	w.poke()
}

// revoke asks the process to leave a lane; at a deadline it is taken.
func (w *world) revoke(l *lane) {
	if w.process == nil || w.process.over || !l.held || l.revoking {
		return
	}
	l.revoking = true
	p, gone := w.process, l.current()
	deadline := w.choices.wait(4 * time.Second)
	w.fault("lane revoked", "%s, for %v", l.id, deadline)
	p.feed(machine.Revoking{Lane: gone})
	p.later(deadline, func() {
		if l.held && l.current() == gone {
			w.fault("revocation ran out", "%s", l.id)
			w.lose(l)
		}
	})
}

// lose takes a lane away at once.
func (w *world) lose(l *lane) {
	p := w.process
	if p == nil || p.over || !l.held {
		return
	}
	gone := l.current()
	l.leave()
	p.check.lost(gone)
	if !w.calm && w.choices.chance(4) {
		// It comes back before anybody said that it was gone.
		w.give(l)
		return
	}
	p.feed(machine.Lost{Lane: gone})
	w.giveAgain(l)
}

// release is the machine's answer to a revocation.
func (w *world) release(gone machine.Lane) {
	l := w.source.find(gone.ID)
	if l == nil || !l.held || l.current() != gone {
		return
	}
	l.leave()
	p := w.process
	p.soon(func() {
		// Some clients say that a lane is gone even after it was left.
		if w.choices.chance(3) {
			p.feed(machine.Lost{Lane: gone})
		}
		w.giveAgain(l)
	})
}

// giveAgain gives the lane to the process after a while in which another
// process may have had it.
func (w *world) giveAgain(l *lane) {
	wait := time.Microsecond
	if !w.calm {
		wait = w.choices.wait(w.plan.span / 4)
	}
	w.after(wait, func() { w.give(l) })
}
