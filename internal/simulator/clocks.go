package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// drawClocks decides whether the store's clock is wrong for a while. The decision uses the seed
// and draws no random number, so that the other seeds keep their histories.
func (p *plan) drawClocks() {
	p.clocks = p.config.Inbox && p.keep == 0 && !p.replays() && p.config.Seed%13 < 3
}

// at is what the store's clock says.
func (w *world) at() time.Duration { return w.now + w.store.ahead }

// clock is the store's, for what keeps moments.
func (w *world) clock() time.Time { return moment(w.at()) }

func moment(at time.Duration) time.Time { return time.Unix(1_000_000_000, 0).Add(at) }

// dates notes by the store's clock when a row was written, and until when it waits.
func (r *row) dates(at, after time.Duration) {
	r.dated, r.due, r.waiting = at, at+after, after
}

// leases notes by the store's clock when a row was claimed, and until when.
func (r *row) leases(at, lease time.Duration) {
	r.cut(at)
	r.dated, r.until, r.waiting = at, max(r.until, at+lease), lease
}

// cut has a row that was dated ahead of the store's clock wait from now.
func (r *row) cut(at time.Duration) time.Duration {
	if r.follows() {
		return 0
	}
	due, until := moment(r.due), moment(r.until)
	by := sqlform.CutAhead(moment(r.dated), moment(at), &due, &until)
	if by > 0 {
		r.due, r.until, r.dated, r.by = due.Sub(moment(0)), until.Sub(moment(0)), at, nil
	}
	return by
}

// cutAhead cuts the waits of all rows before some of them are claimed.
func (w *world) cutAhead() {
	if !w.store.jumped {
		return
	}
	for _, r := range w.store.inbox {
		if !r.waits() || r.follows() {
			continue
		}
		if by := r.cut(w.at()); by > 0 {
			w.fault("a row that was dated ahead waits from now", "%s, by %v", r.key.id, by)
		}
		w.arose("trap T113")
		end := r.due
		if r.token != 0 {
			end = r.until
		}
		if end > w.at()+r.waiting+store.ClockSlack {
			w.broke("trap T113", "the row of %s waits for %v, and was to wait for %v", r.key.id, end-w.at(), r.waiting)
		}
	}
}

// wrongClocks has the store's clock be ahead or behind by hours, and right again, as after a
// failover to a server whose clock is another.
func (w *world) wrongClocks(times int) {
	if !w.plan.clocks || times == 0 {
		return
	}
	w.after(w.choices.wait(w.plan.span/2), func() {
		if w.calm || w.quiet {
			return
		}
		ahead := time.Duration(1+w.choices.below(30)) * time.Hour
		if w.choices.chance(4) {
			ahead = -ahead
		}
		w.setClock(ahead)
		w.after(w.choices.wait(w.plan.span/3), func() {
			w.setClock(0)
			w.wrongClocks(times - 1)
		})
	})
}

// setClock sets the store's clock, which a sender shares. What was due by the clock before is
// known to no process.
func (w *world) setClock(ahead time.Duration) {
	if w.store.ahead == ahead {
		return
	}
	w.fault("the store's clock jumps", "to %v ahead", ahead)
	for _, each := range w.worlds() {
		each.store.ahead, each.store.jumped = ahead, true
		for _, r := range each.store.inbox {
			r.by = nil
		}
	}
}
