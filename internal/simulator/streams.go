package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/model"
	"github.com/semel-go/semel/store"
)

// asks reports whether an entry's mark asks for its stream: what takes effect, is passed
// over, or waits for its turn does. What is retaken and has ended has no mark.
func (f *flight) asks(i int) bool {
	if f.message(i).Version == 0 || f.known[i].Kind != 0 {
		return false
	}
	switch f.of.Entries[i].As {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsBlocked, machine.AsOverdue:
		return true
	}
	return false
}

// streamsHeld reports whether somebody else has a stream that the flight asks for.
func (f *flight) streamsHeld() bool {
	for i := range f.of.Entries {
		if f.asks(i) && f.p.w.store.Stream(f.message(i).Stream).Held() {
			return true
		}
	}
	return false
}

// turns takes the streams that the flight asks for, and answers the fresh marks of
// versions: each counts on those before it.
func (f *flight) turns() {
	now := map[string]model.Place{}
	f.following = make([]bool, len(f.of.Entries))
	for i, e := range f.of.Entries {
		if !f.asks(i) {
			continue
		}
		m, v := f.message(i), &f.verdicts[i]
		s := f.p.w.store.Stream(m.Stream)
		at, there := now[m.Stream]
		if !there {
			at = s.At
			f.p.w.store.Hold(m.Stream, f.tx)
		}
		if f.following[i] = v.Kind == store.Fresh && e.As != machine.AsBlocked && e.As != machine.AsOverdue && m.Version == at.Version+1; f.following[i] {
			at = model.Place{Version: m.Version, Print: e.Item.Print}
		} else if v.Kind == store.Fresh && (e.As == machine.AsApplied || e.As == machine.AsDuplicate || e.As == machine.AsDiscarded && m.Version > at.Version) {
			*v = outOfTurn(m.Version, e.Item.Print, at)
		}
		now[m.Stream] = at
	}
}

// outOfTurn is the verdict on a version that is not its stream's next.
func outOfTurn(version int64, print semel.Fingerprint, at model.Place) store.Verdict {
	if version > at.Version {
		return store.Verdict{Kind: store.Gap, Missing: version - at.Version - 1}
	}
	return store.Verdict{Kind: store.Stale, Known: version == at.Version && model.Conflicts(at.Print, print)}
}

// moveStreams moves the streams of a flight that commits, each as far as its versions
// follow one another, and frees what waited for that.
func (f *flight) moveStreams(a machine.Commit) {
	s := f.p.w.store
	asked := map[string]bool{}
	for i, e := range f.of.Entries {
		if !f.asks(i) {
			continue
		}
		m := f.message(i)
		asked[m.Stream] = true
		if at := &s.Stream(m.Stream).At; f.following[i] && m.Version == at.Version+1 && f.ends(i, a) {
			*at = model.Place{Version: m.Version, Print: e.Item.Print}
		}
	}
	for i := range f.of.Entries { // in an order that is the seed's
		if name := f.message(i).Stream; asked[name] {
			delete(asked, name)
			f.freed = s.FreeTurns(name, f.p, f.p.w.at()) || f.freed
		}
	}
	if f.freed {
		f.p.w.coverage.Add("fault", "rows freed")
	}
}

// ends reports whether an entry takes effect, or is passed over, with its commit.
func (f *flight) ends(i int, a machine.Commit) bool {
	if slices.Contains(a.Trim, i) {
		return false
	}
	if handOf(f.of.Entries[i].Item).claim == nil {
		return true
	}
	return slices.ContainsFunc(a.Rows, func(r machine.Row) bool {
		return r.Entry == i && (r.As == machine.AsApplied || r.As == machine.AsDuplicate || r.As == machine.AsDiscarded)
	})
}

// isNext reports whether a message is its stream's next and nobody has that.
func (w *world) isNext(m *model.Message) bool {
	s := w.store.Stream(m.Stream)
	return !s.Held() && s.At.Version+1 == m.Version
}

// step moves a stream to a message that somebody else has ended, if it is the next.
func (w *world) step(m *model.Message, print semel.Fingerprint) {
	if s := w.store.Stream(m.Stream); m.Version > 0 && s.At.Version+1 == m.Version {
		s.At = model.Place{Version: m.Version, Print: print}
		w.ledger[m.Stream] = m.Version
		w.store.FreeTurns(m.Stream, nil, w.at())
	}
}

// asElsewhere is how another process can mark a version, as it wants to; false: it has
// to wait for another's transaction.
func (w *world) asElsewhere(m *model.Message, as machine.As) (machine.As, bool) {
	if m.Version == 0 || as != machine.AsApplied && as != machine.AsDiscarded {
		return as, true
	}
	s := w.store.Stream(m.Stream)
	switch {
	case s.Held():
		return as, false
	case m.Version > s.At.Version+1:
		return machine.AsBlocked, true
	case m.Version <= s.At.Version:
		return machine.AsDiscarded, true
	}
	return as, true
}

// skip lets a person pass over what never came: up to the first that waits for it.
func (w *world) skip(r *model.Row) {
	name := r.Message.Stream
	s := w.store.Stream(name)
	if s.Held() {
		return
	}
	first := r.Message.Version
	for _, other := range w.store.Inbox {
		if other.WaitsForTurn() && other.Message.Stream == name {
			first = min(first, other.Message.Version)
		}
	}
	w.fault("a person skips", "%s to %d", name, first-1)
	s.At = model.Place{Version: first - 1}
	w.ledger[name] = first - 1
	w.store.FreeTurns(name, nil, w.at())
	w.notify()
}

// dueElsewhere is in how long a row is due that another process writes.
func (w *world) dueElsewhere(as machine.As) time.Duration {
	if as == machine.AsBlocked {
		return w.plan.Config.Gap
	}
	return 0
}
