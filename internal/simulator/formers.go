package simulator

import (
	"slices"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// drawFormer gives a message a former identity: up to three have one, since it was coarser.
func (w *world) drawFormer(m *model.Message, i int) {
	if w.plan.Formers && m.Refused == "" && w.choices.Often(4) {
		m.Former = "former/" + strconv.Itoa(i/3)
	}
}

// drawRule draws the rule of a process's fingerprints. Those of two rules cannot be
// compared, and beside former identities each is by the first.
func (w *world) drawRule() uint8 {
	if w.plan.Formers {
		return 1
	}
	return uint8(1 + w.choices.Below(2))
}

// formerOf is an item's former identity as the store knows it. One without has a name that
// nobody else has.
func formerOf(i *machine.Item) string {
	m := handOf(i).delivery.Message
	if m.Former == "" {
		return "none of " + m.ID
	}
	return m.Former
}

// markOne marks an entry under its identities, and answers.
func (f *flight) markOne(i int, e machine.Entry) store.Verdict {
	s, m := f.p.w.store, handOf(e.Item).delivery.Message
	v := s.Judge(m.ID, e.Item.Print)
	if v.Kind == store.Fresh && m.Former != "" {
		if s.Locks[m.Former] == f.tx { // of an entry before it
			return store.Verdict{Kind: store.Busy}
		}
		v = s.Judge(m.Former, e.Item.Print)
		if v.Former = v.Kind != store.Fresh; v.Former {
			v.Known = s.Rows[model.RowKey{ID: m.ID, Conflict: true, Print: e.Item.Print}] != nil && v.Kind == store.Conflict
			f.p.w.coverage.Add("fault", "former identity: "+v.Kind.String())
		}
	}
	if v.Kind == store.Fresh {
		s.Write(f.tx, model.Mark{Entry: i, ID: m.ID, As: e.As, Print: e.Item.Print, At: f.p.w.now})
		if m.Former != "" {
			s.Write(f.tx, model.Mark{Entry: i, ID: m.Former, As: e.As, Print: e.Item.Print, At: f.p.w.now})
		}
	}
	return v
}

// formersApart checks that no two messages with one former identity are in flight at once
// (A7): what the one writes there the other would be judged by.
func (c *checker) formersApart(f *machine.Flight, marked map[string]bool, m *model.Message) {
	if m.Former == "" {
		return
	}
	apart := !marked[m.Former]
	marked[m.Former] = true
	for _, g := range c.p.flights {
		for i := range g.of.Entries {
			apart = apart && (g.message(i).Former != m.Former || handOf(g.of.Entries[i].Item).claim != nil)
		}
	}
	if !apart {
		c.broke("A7", "%s is in f%d, and another with its former identity %s is in flight", m.Name(), f.Number, m.Former)
	}
}

// formerlyFree reports whether nobody has marked, or is marking, a message's former
// identity.
func (w *world) formerlyFree(m *model.Message) bool {
	return m.Former == "" || w.store.Locks[m.Former] == nil && w.store.Judge(m.Former, byFirstRule(m)).Kind == store.Fresh
}

// outcomeOf is what became of a message's identity, 0 if nothing did: under a former one
// that of the content that was marked there.
func (w *world) outcomeOf(m *model.Message) store.Outcome {
	own, there := w.store.Markers[m.ID]
	if there || m.Former == "" {
		return own.Outcome
	}
	for _, o := range w.messages {
		former, there := w.store.Markers[o.Former]
		if there && o.ID == m.ID && !o.Foreign && !model.Conflicts(former.Print, byFirstRule(o)) {
			return former.Outcome
		}
	}
	return 0
}

// keptAsConflict reports whether a message stands in conflict with what was marked under
// its former identity, and is kept as that, or settled as that where the policy says so.
func (w *world) keptAsConflict(m *model.Message) bool {
	if m.Former == "" || !model.Conflicts(w.store.Markers[m.Former].Print, byFirstRule(m)) {
		return false
	}
	return w.plan.Config.OnConflict == machine.EndKeepFirst || w.store.Rows[model.RowKey{ID: m.ID, Conflict: true, Print: byFirstRule(m)}] != nil
}

// twoFormers reports whether another content of a message's identity had another former
// identity. To the release before those are two messages, and each may take effect.
func (w *world) twoFormers(m *model.Message) bool {
	return slices.ContainsFunc(w.messages, func(o *model.Message) bool { return o.ID == m.ID && o.Former != m.Former })
}

// olderRelease lets a process of the release before take up a message: it marks the former
// identity only, and knows no other.
func (w *world) olderRelease(m *model.Message, most time.Duration) {
	t := &model.Transaction{Open: true}
	w.store.Write(t, model.Mark{ID: m.Former, As: machine.AsApplied, Print: byFirstRule(m)})
	long, commits := w.choices.Wait(most), w.choices.Often(3)
	w.fault("copy in the release before", "%s for %v, commits: %v", m.Name(), long, commits)
	w.after(long, func() {
		if !t.Open {
			return
		}
		if commits {
			t.Effects = append(t.Effects, model.Effect{Message: m})
			w.store.Apply(t, nil, nil, nil)
			w.past[m.ID] = true // that release writes no intents
			w.note("committed in the release before: %s", m.Name())
		}
		w.end(t)
	})
}

// byFirstRule is the fingerprint of a message as every process makes it beside former
// identities.
func byFirstRule(m *model.Message) semel.Fingerprint {
	print := m.Print
	print.Version, print.Sum[15] = 1, 1
	return print
}
