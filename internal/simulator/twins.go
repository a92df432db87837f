package simulator

import (
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// drawTwins publishes other contents of a message's identity, whose first is often set aside.
func (w *world) drawTwins(m *model.Message) {
	c := w.choices
	if !w.plan.Twins || m.Refused != "" || !c.Chance(3) {
		return
	}
	if m.Conduct == model.Succeeds && !w.plan.Calls && c.Often(3) {
		if w.plan.Steps > 0 {
			m.From = c.Below(w.plan.Steps - 1)
		}
		m.Conduct, m.Times, m.Harmless = []model.Conduct{model.AsksPark, model.FailsForGood, model.AsksDiscard, model.FailsRetryable}[c.Below(4)], model.Always, false
	}
	for range c.Between(1, 3) {
		o := w.otherContent(m)
		if w.publish(o); c.Flip() {
			w.publish(o)
		}
	}
}

// endOver ends a row that is due although its marker does not wait for it, and reports whether it
// did.
func (w *world) endOver(r *model.Row) bool {
	s := w.store
	m, marked := s.Markers[r.Key.ID]
	own := s.Owns(r)
	if !w.plan.Twins || own && m.Outcome == store.Waiting {
		return false
	}
	e, _ := sqlform.Over(marked, m.Form(), own, s.Others(r))
	if e == 0 {
		s.TakeMarker(r)
		return false
	}
	w.fault("a row that is over is ended by its claim", "%s, %s", r.Key.ID, e)
	r.As = map[store.RowEvent]machine.As{store.RowCompleted: machine.AsApplied, store.RowParked: machine.AsParked, store.RowDiscarded: machine.AsDiscarded}[e]
	r.Token, r.Started, r.Changed, r.ByHand = 0, 0, w.now, false
	r.Revision++
	w.checkOwners(r.Key.ID)
	s.Advance(r, nil, w.at())
	w.wrapUp()
	return true
}

// checkOwners checks that the marker of an identity belongs to one of its rows at a time, and
// says what that row does (law 16).
func (w *world) checkOwners(id string) {
	s := w.store
	m := s.Markers[id]
	var open, first *model.Row
	for _, r := range s.Inbox {
		switch {
		case r.Key.ID != id || r.ByHand:
			continue
		case !r.Key.Conflict:
			first = r
		}
		if !r.Waits() {
			continue
		}
		if open != nil {
			w.broke("law 16", "two rows of %s wait, %s and %s", id, open.State(), r.State())
		}
		open = r
	}
	w.arose("law 16")
	switch {
	case open != nil && m.Outcome != store.Waiting:
		w.broke("law 16", "a row of %s waits (conflict: %v), and its marker says %s", id, open.Key.Conflict, m.Outcome.String())
	case open != nil && m.Print != open.Print:
		w.broke("law 16", "a row of %s waits (conflict: %v), and its marker has another content", id, open.Key.Conflict)
	case open == nil && m.Outcome == store.Waiting && !w.waitsByHand(id):
		w.broke("law 16", "the marker of %s waits, and no row of it does", id)
	case open == nil && first != nil && m.Print == first.Print && m.Outcome == store.Discarded && first.As != machine.AsDiscarded && !w.someDiscarded(id, first):
		w.broke("law 16", "the marker of %s says that its first row is discarded, and that is %s", id, first.State())
	}
}

func (w *world) waitsByHand(id string) bool {
	return slices.ContainsFunc(w.store.Inbox, func(r *model.Row) bool { return r.Key.ID == id && r.ByHand })
}

// someDiscarded reports whether another row with the content of the first one is discarded.
func (w *world) someDiscarded(id string, first *model.Row) bool {
	return slices.ContainsFunc(w.store.Inbox, func(r *model.Row) bool {
		return r != first && r.Key.ID == id && r.Print == first.Print && r.As == machine.AsDiscarded
	})
}

// checkTwins is checkOwners for what a flight has committed, and for what that has freed.
func (f *flight) checkTwins() {
	w := f.p.w
	switch {
	case !w.plan.Twins:
	case f.freed:
		w.checkAllOwners()
	default:
		for i := range f.of.Entries {
			w.checkOwners(f.message(i).ID)
		}
	}
}

// checkAllOwners is checkOwners for all identities that have rows.
func (w *world) checkAllOwners() {
	if !w.plan.Twins {
		return
	}
	for _, r := range w.store.Inbox {
		if !r.Key.Conflict || w.store.Rows[model.RowKey{ID: r.Key.ID}] == nil {
			w.checkOwners(r.Key.ID)
		}
	}
}
