package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// give hands a lane that is free to one of the processes.
func (w *world) give(l *lane) {
	takers := w.takers(l)
	if len(takers) == 0 || l.held {
		return
	}
	p := takers[w.choices.below(len(takers))]
	l.give(p)
	gone := l.current()
	p.hear(func() {
		p.check.given(gone)
		p.feed(machine.Given{Lane: gone})
	})
	w.poke()
}

// revoke asks the process that has a lane to leave it; at a deadline it is taken.
func (w *world) revoke(l *lane) {
	if !l.held || l.revoking {
		return
	}
	l.revoking = true
	p, gone := l.owner, l.current()
	deadline := w.choices.wait(4 * time.Second)
	w.fault("lane revoked", "%s, for %v", l.id, deadline)
	p.hear(func() { p.feed(machine.Revoking{Lane: gone}) })
	w.after(deadline, func() {
		if l.held && l.current() == gone {
			w.fault("revocation ran out", "%s", l.id)
			w.lose(l)
		}
	})
}

// lose takes a lane away at once.
func (w *world) lose(l *lane) {
	if !l.held {
		return
	}
	p, gone := l.owner, l.current()
	l.leave()
	if !w.calm && !p.frozen && w.choices.chance(4) {
		// It comes back before anybody said that it was gone.
		p.check.lost(gone)
		w.give(l)
		if l.owner == p {
			return
		}
	}
	p.hear(func() {
		p.check.lost(gone)
		p.feed(machine.Lost{Lane: gone})
	})
	w.giveAgain(l)
}

// release is the machine's answer to a revocation.
func (w *world) release(gone source.Lane) {
	l := w.source.find(gone.ID)
	if l == nil || !l.held || l.current() != gone {
		return
	}
	p := l.owner
	l.leave()
	// Some clients say that a lane is gone even after it was left.
	if w.choices.chance(3) {
		p.soon(func() { p.feed(machine.Lost{Lane: gone}) })
	}
	w.giveAgain(l)
}

// giveAgain gives the lane away after a while.
func (w *world) giveAgain(l *lane) {
	wait := time.Microsecond
	if !w.calm {
		wait = w.choices.wait(w.plan.span / 4)
	}
	w.after(wait, func() { w.give(l) })
}
