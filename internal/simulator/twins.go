package simulator

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// drawTwins lets persons act on the rows of identities that have several contents. Whether
// they do is told by a number that was drawn before, so that the other seeds keep their
// histories.
func (p *plan) drawTwins() {
	p.twins = p.config.Wait && p.prints && !p.formers && !p.replays() && p.keep == 0 && p.config.Seed%11 < 3
	if !p.twins {
		return
	}
	p.has[troubleContent], p.has[troubleHandler] = true, true
	for _, then := range []*machine.Ending{&p.config.OnConflict, &p.config.OnExhausted} {
		if *then == machine.EndHalt || *then == machine.EndKeepFirst {
			*then = machine.EndPark
		}
	}
}

// drawTwins publishes other contents of a message's identity, whose first is often set aside.
func (w *world) drawTwins(m *message) {
	c := w.choices
	if !w.plan.twins || m.refused != "" || !c.chance(3) {
		return
	}
	if m.conduct == succeeds && !w.plan.calls && c.often(3) {
		if w.plan.steps > 0 {
			m.from = c.below(w.plan.steps - 1)
		}
		m.conduct, m.times, m.harmless = []conduct{asksPark, failsForGood, asksDiscard, failsRetryable}[c.below(4)], always, false
	}
	for range c.between(1, 3) {
		o := w.otherContent(m)
		if w.publish(o); c.flip() {
			w.publish(o)
		}
	}
}

// state is the row's state as the stores write it.
func (r *row) state() store.RowState {
	switch {
	case r.waits() && r.token != 0:
		return store.StateInProgress
	case r.as == machine.AsReceived:
		return store.StateReceived
	case r.as == machine.AsWaiting:
		return store.StateFailedRetryable
	case r.as == machine.AsBlocked:
		return store.StateBlocked
	case r.as == machine.AsDiscarded:
		return store.StateDiscarded
	case r.as == machine.AsDeadLettered:
		return store.StateDeadLettered
	case r.as == machine.AsParked, r.as == machine.AsOverdue:
		return store.StateParked
	}
	return store.StateCompleted
}

// twin is the row as the product's rules about markers ask for it.
func (r *row) twin() sqlform.Twin {
	return sqlform.Twin{State: r.state(), Conflict: r.key.conflict, Version: int64(r.print.Version), Sum: sqlform.Sum(r.print),
		Stepped: len(r.steps) > 0, UnknownOutcome: r.calls.Started > r.calls.Finished}
}

// others are the other rows of a row's identity.
func (s *simStore) others(r *row) (all []sqlform.Twin) {
	for _, o := range s.inbox {
		if o != r && o.key.id == r.key.id {
			all = append(all, o.twin())
		}
	}
	return all
}

func (m marker) form() sqlform.Marker {
	return sqlform.Marker{Outcome: int64(m.outcome), Version: int64(m.print.Version), Sum: sqlform.Sum(m.print)}
}

// owns reports whether the marker of a row's identity belongs to the row.
func (s *simStore) owns(r *row) bool {
	m, marked := s.markers[r.key.id]
	return marked && m.form().Of(r.twin(), s.others(r))
}

// waitsFor reports whether the marker of a row's identity waits for the row.
func (s *simStore) waitsFor(r *row) bool {
	return s.markers[r.key.id].outcome == store.Waiting && s.owns(r)
}

// mayRun is nil if a person may let the row run beside the others of its identity.
func (s *simStore) mayRun(r *row) error {
	return admin.MayRun(0, s.markers[r.key.id].outcome, s.owns(r), sqlform.StoredTwins(s.others(r)))
}

// takeMarker has the marker of a row's identity wait for the row.
func (s *simStore) takeMarker(r *row) {
	m := s.markers[r.key.id]
	if m.print != r.print {
		s.passed[r.key.id] = true
	}
	s.remember(r.key.id, store.Waiting, marker{print: r.print, at: m.at})
}

// closeMarker closes the marker of a row that is discarded, if it belongs to the row. One that
// a conflict had is given back to the row of the first content.
func (s *simStore) closeMarker(r *row) {
	m := s.markers[r.key.id]
	if !s.owns(r) || m.outcome == store.Applied {
		return
	}
	closed := m.form()
	closed.Outcome = int64(store.Discarded)
	if r.key.conflict {
		closed = sqlform.Returned(closed, s.others(r))
	}
	m.print = sqlform.Fingerprint(uint8(closed.Version), closed.Sum)
	s.remember(r.key.id, store.Outcome(closed.Outcome), m)
}

// endOver ends a row that is due although its marker does not wait for it, and reports whether it
// did.
func (w *world) endOver(r *row) bool {
	s := w.store
	m, marked := s.markers[r.key.id]
	own := s.owns(r)
	if !w.plan.twins || own && m.outcome == store.Waiting {
		return false
	}
	e, _ := sqlform.Over(marked, m.form(), own, s.others(r))
	if e == 0 {
		s.takeMarker(r)
		return false
	}
	w.fault("a row that is over is ended by its claim", "%s, %s", r.key.id, e)
	r.as = map[store.RowEvent]machine.As{store.RowCompleted: machine.AsApplied, store.RowParked: machine.AsParked, store.RowDiscarded: machine.AsDiscarded}[e]
	r.token, r.started, r.changed, r.byHand = 0, 0, w.now, false
	r.revision++
	w.checkOwners(r.key.id)
	s.advance(r, nil, w.at())
	w.wrapUp()
	return true
}

// rowWith reports whether there is a row of an identity with a content, which is what a
// settlement needs whose marker belongs to another row by now.
func (s *simStore) rowWith(id string, print semel.Fingerprint) bool {
	return slices.ContainsFunc(s.inbox, func(r *row) bool { return r.key.id == id && !conflicts(r.print, print) })
}

// checkOwners checks that the marker of an identity belongs to one of its rows at a time, and
// says what that row does (law 16).
func (w *world) checkOwners(id string) {
	s := w.store
	m := s.markers[id]
	var open, first *row
	for _, r := range s.inbox {
		switch {
		case r.key.id != id || r.byHand:
			continue
		case !r.key.conflict:
			first = r
		}
		if !r.waits() {
			continue
		}
		if open != nil {
			w.broke("law 16", "two rows of %s wait, %s and %s", id, open.state(), r.state())
		}
		open = r
	}
	w.arose("law 16")
	switch {
	case open != nil && m.outcome != store.Waiting:
		w.broke("law 16", "a row of %s waits (conflict: %v), and its marker says %s", id, open.key.conflict, m.outcome.String())
	case open != nil && m.print != open.print:
		w.broke("law 16", "a row of %s waits (conflict: %v), and its marker has another content", id, open.key.conflict)
	case open == nil && m.outcome == store.Waiting && !w.waitsByHand(id):
		w.broke("law 16", "the marker of %s waits, and no row of it does", id)
	case open == nil && first != nil && m.print == first.print && m.outcome == store.Discarded && first.as != machine.AsDiscarded && !w.someDiscarded(id, first):
		w.broke("law 16", "the marker of %s says that its first row is discarded, and that is %s", id, first.state())
	}
}

func (w *world) waitsByHand(id string) bool {
	return slices.ContainsFunc(w.store.inbox, func(r *row) bool { return r.key.id == id && r.byHand })
}

// someDiscarded reports whether another row with the content of the first one is discarded.
func (w *world) someDiscarded(id string, first *row) bool {
	return slices.ContainsFunc(w.store.inbox, func(r *row) bool {
		return r != first && r.key.id == id && r.print == first.print && r.as == machine.AsDiscarded
	})
}

// checkTwins is checkOwners for what a flight has committed, and for what that has freed.
func (f *flight) checkTwins() {
	w := f.p.w
	switch {
	case !w.plan.twins:
	case f.freed:
		w.checkAllOwners()
	default:
		for i := range f.of.Entries {
			w.checkOwners(f.message(i).id)
		}
	}
}

// checkAllOwners is checkOwners for all identities that have rows.
func (w *world) checkAllOwners() {
	if !w.plan.twins {
		return
	}
	for _, r := range w.store.inbox {
		if !r.key.conflict || w.store.rows[rowKey{id: r.key.id}] == nil {
			w.checkOwners(r.key.id)
		}
	}
}
