package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/source"
)

// give hands a lane that is free to one of the processes.
func (w *world) give(l *model.Lane) {
	takers := w.takers(l)
	if len(takers) == 0 || l.Held {
		return
	}
	p := takers[w.choices.Below(len(takers))]
	l.Give(p)
	gone := l.Current()
	p.hear(func() {
		p.check.given(gone)
		p.feed(machine.Given{Lane: gone})
	})
	w.poke()
}

// revoke asks the process that has a lane to leave it; at a deadline it is taken.
func (w *world) revoke(l *model.Lane) {
	if !l.Held || l.Revoking {
		return
	}
	l.Revoking = true
	p, gone := l.Owner.(*process), l.Current()
	deadline := w.choices.Wait(4 * time.Second)
	w.fault("lane revoked", "%s, for %v", l.ID, deadline)
	p.hear(func() { p.feed(machine.Revoking{Lane: gone}) })
	w.after(deadline, func() {
		if l.Held && l.Current() == gone {
			w.fault("revocation ran out", "%s", l.ID)
			w.lose(l)
		}
	})
}

// lose takes a lane away at once.
func (w *world) lose(l *model.Lane) {
	if !l.Held {
		return
	}
	p, gone := l.Owner.(*process), l.Current()
	l.Leave()
	if !w.calm && !p.frozen && w.choices.Chance(4) {
		// It comes back before anybody said that it was gone.
		p.check.lost(gone)
		w.give(l)
		if l.Owner == p {
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
	l := w.source.Find(gone.ID)
	if l == nil || !l.Held || l.Current() != gone {
		return
	}
	p := l.Owner.(*process)
	l.Leave()
	// Some clients say that a lane is gone even after it was left.
	if w.choices.Chance(3) {
		p.soon(func() { p.feed(machine.Lost{Lane: gone}) })
	}
	w.giveAgain(l)
}

// giveAgain gives the lane away after a while.
func (w *world) giveAgain(l *model.Lane) {
	wait := time.Microsecond
	if !w.calm {
		wait = w.choices.Wait(w.plan.Span / 4)
	}
	w.after(wait, func() { w.give(l) })
}
