package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// drawAges gives messages their ages, which copies and other contents keep: when the
// identity was published first. Then it publishes some again, long after, and others then.
func (w *world) drawAges() {
	if w.plan.Keep == 0 {
		return
	}
	first := map[string]time.Duration{}
	for _, l := range w.source.Lanes {
		for _, d := range l.Log {
			if at, known := first[d.Message.ID]; !d.Message.Foreign && (!known || d.Produced < at) {
				first[d.Message.ID] = d.Produced
			}
		}
	}
	for _, m := range w.messages {
		m.Age = first[m.ID]
	}
	for _, l := range w.source.Lanes {
		at := time.Duration(0)
		if n := len(l.Log); n > 0 {
			at = l.Log[n-1].Produced
		}
		for range w.choices.Below(8) {
			at += w.choices.Wait(w.plan.Span / 2)
			at = w.publishLate(l, at)
		}
	}
}

// publishLate publishes a message again that was published before, and others right behind
// it. It returns when the last of them was.
func (w *world) publishLate(l *model.Lane, at time.Duration) time.Duration {
	m := w.messages[w.choices.Below(len(w.messages))]
	at = max(at, m.Age)
	l.Log = append(l.Log, &model.Delivery{Message: m, Lane: l, Position: len(l.Log), Produced: at})
	for range w.choices.Below(3) {
		next := w.drawMessage(len(w.messages))
		next.Age = at
		l.Log = append(l.Log, &model.Delivery{Message: next, Lane: l, Position: len(l.Log), Produced: at})
	}
	return at
}

// cutoff is before when what became so may be removed: by how long it is kept before the
// oldest delivery that is not settled, or not read.
func (w *world) cutoff() time.Duration {
	oldest := w.now
	for _, l := range w.source.Lanes {
		for _, d := range l.Log {
			if !d.Settled && d.Of == nil {
				oldest = min(oldest, d.Produced)
			}
		}
	}
	return oldest - w.plan.Keep
}

// reap raises the low-water mark now and then, and begins to remove what is below it.
func (w *world) reap() {
	if w.plan.Keep == 0 || w.law != nil || w.finished {
		return
	}
	w.after(w.plan.Keep/4+w.choices.Wait(w.plan.Keep), w.reap)
	to := w.cutoff()
	if w.store.Down || to <= w.store.Low {
		return
	}
	w.store.Low = to
	w.note("low-water mark at %v", to)
	if !w.calm && w.choices.Chance(6) {
		w.fault("the reaper dies before it removes anything", "")
		return
	}
	w.after(w.choices.Wait(w.plan.Lag), func() { w.slice(w.choices.Between(1, 8)) })
}

// slice removes some of what may be removed, and goes on a little later.
func (w *world) slice(most int) {
	s := w.store
	if s.Down || w.finished {
		return
	}
	due := s.MayGo()
	for _, id := range due[:min(most, len(due))] {
		w.remove(id)
	}
	switch {
	case len(due) <= most:
	case !w.calm && w.choices.Chance(10):
		w.fault("the reaper dies between two slices", "")
	default:
		w.after(w.choices.Wait(w.plan.Lag), func() { w.slice(most) })
	}
}

// remove removes a marker with its rows.
func (w *world) remove(id string) {
	s := w.store
	w.coverage.Add("fault", "marker removed")
	w.note("removed: %s", id)
	s.Gone[id] = model.Removed{Marker: s.Markers[id], Times: s.Gone[id].Times + 1}
	delete(s.Markers, id)
	s.Changes[id]++
	s.Inbox = slices.DeleteFunc(s.Inbox, func(r *model.Row) bool {
		if r.Key.ID != id {
			return false
		}
		w.coverage.Add("fault", "row removed")
		if r.Waits() || r.As == machine.AsParked {
			w.broke("law 4", "the row of %s is removed, and has not ended", id)
		}
		delete(s.Rows, r.Key)
		s.GoneRows[r.Key] = true
		return true
	})
}

// lookOld answers the fresh marks of what is to run, now or as a row, and is too old. As in
// the stores it comes last: of what stands behind another of its line nobody hears whether
// it is too old before it asks to wait there.
func (f *flight) lookOld() {
	for i, e := range f.of.Entries {
		asked := store.Mark{As: e.As.Outcome()}
		if f.verdicts[i].Kind == store.Fresh && handOf(e.Item).claim == nil && asked.Asks() && f.p.w.store.Old(f.message(i)) {
			f.verdicts[i].Kind = store.Old
		}
	}
}
