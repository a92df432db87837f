package simulator

import (
	"cmp"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// drawReaping lets what has ended be removed after a while. Whether it is, is told by a
// number that was drawn before, so that the other seeds keep their histories.
func (p *plan) drawReaping(c *choices) {
	drawn := p.config.Seed%5 < 2 || p.config.Block && p.config.Seed%8 == 0
	if !drawn || p.calls || p.config.Unmarked || p.streams > 0 || p.formers {
		return
	}
	p.keep = time.Duration(c.between(1, 20)) * 100 * time.Millisecond
	p.config.OnExpired = []machine.Ending{machine.EndPark, machine.EndDiscard}[c.below(2)]
	if p.config.Block {
		p.config.OnExpired = machine.EndPark // which keeps a line back
	}
	if p.config.OnConflict == machine.EndDeadLetter || p.config.OnExhausted == machine.EndDeadLetter {
		p.config.OnExpired = machine.EndDeadLetter
	}
}

// drawAges gives messages their ages, which copies and other contents keep: when the
// identity was published first. Then it publishes some again, long after, and others then.
func (w *world) drawAges() {
	if w.plan.keep == 0 {
		return
	}
	first := map[string]time.Duration{}
	for _, l := range w.source.lanes {
		for _, d := range l.log {
			if at, known := first[d.message.id]; !d.message.foreign && (!known || d.produced < at) {
				first[d.message.id] = d.produced
			}
		}
	}
	for _, m := range w.messages {
		m.age = first[m.id]
	}
	for _, l := range w.source.lanes {
		at := time.Duration(0)
		if n := len(l.log); n > 0 {
			at = l.log[n-1].produced
		}
		for range w.choices.below(8) {
			at += w.choices.wait(w.plan.span / 2)
			at = w.publishLate(l, at)
		}
	}
}

// publishLate publishes a message again that was published before, and others right behind
// it. It returns when the last of them was.
func (w *world) publishLate(l *lane, at time.Duration) time.Duration {
	m := w.messages[w.choices.below(len(w.messages))]
	at = max(at, m.age)
	l.log = append(l.log, &delivery{message: m, lane: l, position: len(l.log), produced: at})
	for range w.choices.below(3) {
		next := w.drawMessage(len(w.messages))
		next.age = at
		l.log = append(l.log, &delivery{message: next, lane: l, position: len(l.log), produced: at})
	}
	return at
}

// removed is what the store no longer has of an identity: only the checker knows.
type removed struct {
	marker
	times int
}

// remember writes a marker. One that is changed keeps its age.
func (s *simStore) remember(id string, o store.Outcome, m marker) {
	if there, known := s.markers[id]; known {
		m.at = there.at
	}
	m.outcome = o
	s.markers[id] = m
	s.changes[id]++
}

// cutoff is before when what became so may be removed: by how long it is kept before the
// oldest delivery that is not settled, or not read.
func (w *world) cutoff() time.Duration {
	oldest := w.now
	for _, l := range w.source.lanes {
		for _, d := range l.log {
			if !d.settled && d.of == nil {
				oldest = min(oldest, d.produced)
			}
		}
	}
	return oldest - w.plan.keep
}

// reap raises the low-water mark now and then, and begins to remove what is below it.
func (w *world) reap() {
	if w.plan.keep == 0 || w.law != nil || w.finished {
		return
	}
	w.after(w.plan.keep/4+w.choices.wait(w.plan.keep), w.reap)
	to := w.cutoff()
	if w.store.down || to <= w.store.low {
		return
	}
	w.store.low = to
	w.note("low-water mark at %v", to)
	if !w.calm && w.choices.chance(6) {
		w.fault("the reaper dies before it removes anything", "")
		return
	}
	w.after(w.choices.wait(w.plan.lag), func() { w.slice(w.choices.between(1, 8)) })
}

// slice removes some of what may be removed, and goes on a little later.
func (w *world) slice(most int) {
	s := w.store
	if s.down || w.finished {
		return
	}
	due := s.mayGo()
	for _, id := range due[:min(most, len(due))] {
		w.remove(id)
	}
	switch {
	case len(due) <= most:
	case !w.calm && w.choices.chance(10):
		w.fault("the reaper dies between two slices", "")
	default:
		w.after(w.choices.wait(w.plan.lag), func() { w.slice(most) })
	}
}

// mayGo are the identities below the low-water mark that have ended with all their rows,
// and that nobody has locked, the oldest first.
func (s *simStore) mayGo() (due []string) {
	stays := map[string]bool{}
	for _, r := range s.inbox {
		if !r.ended() || r.changed >= s.low {
			stays[r.key.id] = true
		}
	}
	for id, m := range s.markers {
		ended := m.outcome == store.Applied || m.outcome == store.Discarded || m.outcome == store.DeadLettered
		if ended && m.at < s.low && !stays[id] && s.locks[id] == nil {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(x, y string) int {
		return cmp.Or(cmp.Compare(s.markers[x].at, s.markers[y].at), cmp.Compare(x, y))
	})
	return due
}

// ended reports whether nothing becomes of the row any more.
func (r *row) ended() bool {
	switch r.as {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsDeadLettered:
		return true
	}
	return false
}

// remove removes a marker with its rows.
func (w *world) remove(id string) {
	s := w.store
	w.coverage.add("fault", "marker removed")
	w.note("removed: %s", id)
	s.gone[id] = removed{s.markers[id], s.gone[id].times + 1}
	delete(s.markers, id)
	s.changes[id]++
	s.inbox = slices.DeleteFunc(s.inbox, func(r *row) bool {
		if r.key.id != id {
			return false
		}
		w.coverage.add("fault", "row removed")
		if r.waits() || r.as == machine.AsParked {
			w.broke("law 4", "the row of %s is removed, and has not ended", id)
		}
		delete(s.rows, r.key)
		s.goneRows[r.key] = true
		return true
	})
}

// old reports whether a message is older than what the store keeps.
func (s *simStore) old(m *message) bool { return m.refused == "" && m.age < s.low }

// wasRemoved reports whether the store had something of an identity.
func (s *simStore) wasRemoved(id string) bool { return s.gone[id].times > 0 }

// lookOld answers the fresh marks of what is to run, now or as a row, and is too old. As in
// the stores it comes last: of what stands behind another of its line nobody hears whether
// it is too old before it asks to wait there.
func (f *flight) lookOld() {
	for i, e := range f.of.Entries {
		asked := store.Mark{As: e.As.Outcome()}
		if f.verdicts[i].Kind == store.Fresh && handOf(e.Item).claim == nil && asked.Asks() && f.p.w.store.old(f.message(i)) {
			f.verdicts[i].Kind = store.Old
		}
	}
}
