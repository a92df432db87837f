package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// at is what the store's clock says.
func (w *world) at() time.Duration { return w.now + w.store.Ahead }

// clock is the store's, for what keeps moments.
func (w *world) clock() time.Time { return model.Moment(w.at()) }

// cutAhead cuts the waits of all rows before some of them are claimed.
func (w *world) cutAhead() {
	if !w.store.Jumped {
		return
	}
	for _, r := range w.store.Inbox {
		if !r.Waits() || r.Follows() {
			continue
		}
		if by := r.Cut(w.at()); by > 0 {
			w.fault("a row that was dated ahead waits from now", "%s, by %v", r.Key.ID, by)
		}
		w.arose("trap T113")
		end := r.Due
		if r.Token != 0 {
			end = r.Until
		}
		if end > w.at()+r.Waiting+store.ClockSlack {
			w.broke("trap T113", "the row of %s waits for %v, and was to wait for %v", r.Key.ID, end-w.at(), r.Waiting)
		}
	}
}

// wrongClocks has the store's clock be ahead or behind by hours, and right again, as after a
// failover to a server whose clock is another.
func (w *world) wrongClocks(times int) {
	if !w.plan.Clocks || times == 0 {
		return
	}
	w.after(w.choices.Wait(w.plan.Span/2), func() {
		if w.calm || w.quiet {
			return
		}
		ahead := time.Duration(1+w.choices.Below(30)) * time.Hour
		if w.choices.Chance(4) {
			ahead = -ahead
		}
		w.setClock(ahead)
		w.after(w.choices.Wait(w.plan.Span/3), func() {
			w.setClock(0)
			w.wrongClocks(times - 1)
		})
	})
}

// setClock sets the store's clock, which a sender shares. What was due by the clock before is
// known to no process.
func (w *world) setClock(ahead time.Duration) {
	if w.store.Ahead == ahead {
		return
	}
	w.fault("the store's clock jumps", "to %v ahead", ahead)
	for _, each := range w.worlds() {
		each.store.Ahead, each.store.Jumped = ahead, true
		for _, r := range each.store.Inbox {
			r.By = nil
		}
	}
}
