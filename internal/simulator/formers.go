package simulator

import (
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// drawFormer gives a message a former identity: up to three have one, since it was coarser.
func (w *world) drawFormer(m *message, i int) {
	if w.plan.formers && m.refused == "" && w.choices.often(4) {
		m.former = "former/" + strconv.Itoa(i/3)
	}
}

// drawRule draws the rule of a process's fingerprints. Those of two rules cannot be
// compared, and beside former identities each is by the first.
func (w *world) drawRule() uint8 {
	if w.plan.formers {
		return 1
	}
	return uint8(1 + w.choices.below(2))
}

// formerOf is an item's former identity as the store knows it. One without has a name that
// nobody else has.
func formerOf(i *machine.Item) string {
	m := handOf(i).delivery.message
	if m.former == "" {
		return "none of " + m.id
	}
	return m.former
}

// holder is who has locked one of an item's identities; nil if nobody.
func (s *simStore) holder(i *machine.Item) *transaction {
	if t := s.locks[identity(i)]; t != nil {
		return t
	}
	return s.locks[formerOf(i)]
}

// markOne marks an entry under its identities, and answers.
func (f *flight) markOne(i int, e machine.Entry) store.Verdict {
	s, m := f.p.w.store, handOf(e.Item).delivery.message
	v := s.judge(m.id, e.Item.Print)
	if v.Kind == store.Fresh && m.former != "" {
		if s.locks[m.former] == f.tx { // of an entry before it
			return store.Verdict{Kind: store.Busy}
		}
		v = s.judge(m.former, e.Item.Print)
		if v.Former = v.Kind != store.Fresh; v.Former {
			v.Known = s.rows[rowKey{m.id, true, e.Item.Print}] != nil && v.Kind == store.Conflict
			f.p.w.coverage.add("fault", "former identity: "+v.Kind.String())
		}
	}
	if v.Kind == store.Fresh {
		s.write(f.tx, mark{i, m.id, e.As, e.Item.Print, f.p.w.now})
		if m.former != "" {
			s.write(f.tx, mark{i, m.former, e.As, e.Item.Print, f.p.w.now})
		}
	}
	return v
}

// formersApart checks that no two messages with one former identity are in flight at once
// (A7): what the one writes there the other would be judged by.
func (c *checker) formersApart(f *machine.Flight, marked map[string]bool, m *message) {
	if m.former == "" {
		return
	}
	apart := !marked[m.former]
	marked[m.former] = true
	for _, g := range c.p.flights {
		for i := range g.of.Entries {
			apart = apart && (g.message(i).former != m.former || handOf(g.of.Entries[i].Item).claim != nil)
		}
	}
	if !apart {
		c.broke("A7", "%s is in f%d, and another with its former identity %s is in flight", m.name(), f.Number, m.former)
	}
}

// marked is the marker that says what became of a message: its own, also when it was removed
// since, or else the one under its former identity.
func (s *simStore) marked(m *message) (marker, bool) {
	own, there := s.markers[m.id]
	if was := s.gone[m.id]; !there && was.times > 0 {
		return was.marker, true
	}
	if there || m.former == "" {
		return own, there
	}
	former, there := s.markers[m.former]
	return former, there
}

// formerlyFree reports whether nobody has marked, or is marking, a message's former
// identity.
func (w *world) formerlyFree(m *message) bool {
	return m.former == "" || w.store.locks[m.former] == nil && w.store.judge(m.former, byFirstRule(m)).Kind == store.Fresh
}

// outcomeOf is what became of a message's identity, 0 if nothing did: under a former one
// that of the content that was marked there.
func (w *world) outcomeOf(m *message) store.Outcome {
	own, there := w.store.markers[m.id]
	if there || m.former == "" {
		return own.outcome
	}
	for _, o := range w.messages {
		former, there := w.store.markers[o.former]
		if there && o.id == m.id && !o.foreign && !conflicts(former.print, byFirstRule(o)) {
			return former.outcome
		}
	}
	return 0
}

// keptAsConflict reports whether a message stands in conflict with what was marked under
// its former identity, and is kept as that, or settled as that where the policy says so.
func (w *world) keptAsConflict(m *message) bool {
	if m.former == "" || !conflicts(w.store.markers[m.former].print, byFirstRule(m)) {
		return false
	}
	return w.plan.config.OnConflict == machine.EndKeepFirst || w.store.rows[rowKey{m.id, true, byFirstRule(m)}] != nil
}

// twoFormers reports whether another content of a message's identity had another former
// identity. To the release before those are two messages, and each may take effect.
func (w *world) twoFormers(m *message) bool {
	return slices.ContainsFunc(w.messages, func(o *message) bool { return o.id == m.id && o.former != m.former })
}

// olderRelease lets a process of the release before take up a message: it marks the former
// identity only, and knows no other.
func (w *world) olderRelease(m *message, most time.Duration) {
	t := &transaction{open: true}
	w.store.write(t, mark{id: m.former, as: machine.AsApplied, print: byFirstRule(m)})
	long, commits := w.choices.wait(most), w.choices.often(3)
	w.fault("copy in the release before", "%s for %v, commits: %v", m.name(), long, commits)
	w.after(long, func() {
		if !t.open {
			return
		}
		if commits {
			t.effects = append(t.effects, effect{message: m})
			w.store.apply(t, nil, nil, nil)
			w.past[m.id] = true // that release writes no intents
			w.note("committed in the release before: %s", m.name())
		}
		w.end(t)
	})
}

// byFirstRule is the fingerprint of a message as every process makes it beside former
// identities.
func byFirstRule(m *message) semel.Fingerprint {
	print := m.print
	print.Version, print.Sum[15] = 1, 1
	return print
}
