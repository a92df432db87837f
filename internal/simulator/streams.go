package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// place is where a stream is: at a version that had a content.
type place struct {
	version int64
	print   semel.Fingerprint
}

// stream is what the store knows of a stream.
type stream struct {
	at place
	// holder is the transaction that has it until it ends.
	holder *transaction
}

// stream returns a stream, which begins before version 1.
func (s *simStore) stream(name string) *stream {
	if s.streams[name] == nil {
		s.streams[name] = &stream{}
	}
	return s.streams[name]
}

// held reports whether an open transaction has the stream.
func (s *stream) held() bool { return s.holder != nil && s.holder.open }

// hold gives a transaction the stream until it ends.
func (s *simStore) hold(name string, t *transaction) { s.stream(name).holder = t }

// overdue reports whether the row was set aside because the version before it did not
// come in time.
func (r *row) overdue() bool { return r.as == machine.AsOverdue }

// waitsForTurn reports whether the row is to be freed when its turn comes.
func (r *row) waitsForTurn() bool {
	return r.message.version > 0 && (r.as == machine.AsBlocked && r.token == 0 || r.overdue())
}

// freeTurns frees the rows of a stream whose turn has come: that were waiting, or were
// to wait from now on. It reports whether there was one.
func (s *simStore) freeTurns(name string, by *process, now time.Duration) (freed bool) {
	for _, r := range s.inbox {
		if !r.waitsForTurn() || r.message.stream != name || r.message.version > s.stream(name).at.version+1 {
			continue
		}
		if r.overdue() && !(s.owns(r) && s.markers[r.key.id].outcome == store.Parked) {
			r.as, r.reason = machine.AsParked, semel.ReasonConflict // another content has the marker
			continue
		}
		r.as, r.reason, r.by = machine.AsReceived, "", by
		r.dates(now, 0)
		s.remember(r.key.id, store.Waiting, marker{print: r.print, at: now})
		freed = true
	}
	return freed
}

// asks reports whether an entry's mark asks for its stream: what takes effect, is passed
// over, or waits for its turn does. What is retaken and has ended has no mark.
func (f *flight) asks(i int) bool {
	if f.message(i).version == 0 || f.known[i].Kind != 0 {
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
		if f.asks(i) && f.p.w.store.stream(f.message(i).stream).held() {
			return true
		}
	}
	return false
}

// turns takes the streams that the flight asks for, and answers the fresh marks of
// versions: each counts on those before it.
func (f *flight) turns() {
	now := map[string]place{}
	f.following = make([]bool, len(f.of.Entries))
	for i, e := range f.of.Entries {
		if !f.asks(i) {
			continue
		}
		m, v := f.message(i), &f.verdicts[i]
		s := f.p.w.store.stream(m.stream)
		at, there := now[m.stream]
		if !there {
			at = s.at
			f.p.w.store.hold(m.stream, f.tx)
		}
		if f.following[i] = v.Kind == store.Fresh && e.As != machine.AsBlocked && e.As != machine.AsOverdue && m.version == at.version+1; f.following[i] {
			at = place{m.version, e.Item.Print}
		} else if v.Kind == store.Fresh && (e.As == machine.AsApplied || e.As == machine.AsDuplicate || e.As == machine.AsDiscarded && m.version > at.version) {
			*v = outOfTurn(m.version, e.Item.Print, at)
		}
		now[m.stream] = at
	}
}

// outOfTurn is the verdict on a version that is not its stream's next.
func outOfTurn(version int64, print semel.Fingerprint, at place) store.Verdict {
	if version > at.version {
		return store.Verdict{Kind: store.Gap, Missing: version - at.version - 1}
	}
	return store.Verdict{Kind: store.Stale, Known: version == at.version && conflicts(at.print, print)}
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
		asked[m.stream] = true
		if at := &s.stream(m.stream).at; f.following[i] && m.version == at.version+1 && f.ends(i, a) {
			*at = place{m.version, e.Item.Print}
		}
	}
	for i := range f.of.Entries { // in an order that is the seed's
		if name := f.message(i).stream; asked[name] {
			delete(asked, name)
			f.freed = s.freeTurns(name, f.p, f.p.w.at()) || f.freed
		}
	}
	if f.freed {
		f.p.w.coverage.add("fault", "rows freed")
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
func (w *world) isNext(m *message) bool {
	s := w.store.stream(m.stream)
	return !s.held() && s.at.version+1 == m.version
}

// step moves a stream to a message that somebody else has ended, if it is the next.
func (w *world) step(m *message, print semel.Fingerprint) {
	if s := w.store.stream(m.stream); m.version > 0 && s.at.version+1 == m.version {
		s.at = place{m.version, print}
		w.ledger[m.stream] = m.version
		w.store.freeTurns(m.stream, nil, w.at())
	}
}

// asElsewhere is how another process can mark a version, as it wants to; false: it has
// to wait for another's transaction.
func (w *world) asElsewhere(m *message, as machine.As) (machine.As, bool) {
	if m.version == 0 || as != machine.AsApplied && as != machine.AsDiscarded {
		return as, true
	}
	s := w.store.stream(m.stream)
	switch {
	case s.held():
		return as, false
	case m.version > s.at.version+1:
		return machine.AsBlocked, true
	case m.version <= s.at.version:
		return machine.AsDiscarded, true
	}
	return as, true
}

// skip lets a person pass over what never came: up to the first that waits for it.
func (w *world) skip(r *row) {
	name := r.message.stream
	s := w.store.stream(name)
	if s.held() {
		return
	}
	first := r.message.version
	for _, other := range w.store.inbox {
		if other.waitsForTurn() && other.message.stream == name {
			first = min(first, other.message.version)
		}
	}
	w.fault("a person skips", "%s to %d", name, first-1)
	s.at = place{version: first - 1}
	w.ledger[name] = first - 1
	w.store.freeTurns(name, nil, w.at())
	w.notify()
}

// dueElsewhere is in how long a row is due that another process writes.
func (w *world) dueElsewhere(as machine.As) time.Duration {
	if as == machine.AsBlocked {
		return w.plan.config.Gap
	}
	return 0
}
