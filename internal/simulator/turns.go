package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// turn is what the checker knows of a version whose turn has not come, or is over.
type turn struct {
	// out: the store has said so.
	out bool
	// must is how its next flight has to mark it, 0 if that may ask once more; reason is
	// what its row has to say.
	must   machine.As
	reason semel.Reason
	// after is how long it has to wait.
	after time.Duration
}

// early reports whether a message's turn has not come, or is over, or whether it is too old.
func early(v store.Verdict) bool {
	return v.Kind == store.Gap || v.Kind == store.Stale || v.Kind == store.Behind || v.Kind == store.Old
}

// outOfTurn is called when the machine hears that an entry is out of its turn.
func (c *checker) outOfTurn(f *flight, i int) {
	h, v := handOf(f.of.Entries[i].Item), f.verdicts[i]
	h.turn = turn{out: true}
	if v.Kind == store.Stale && f.passedInVain(h.delivery.message) {
		c.w.coverage.add("fault", "a version asks again behind one that was taken back")
		return
	}
	switch {
	case v.Kind == store.Old:
		c.tooOld(h, f.of.Entries[i].As)
	case v.Kind == store.Stale && v.Known && c.p.config.OnConflict != machine.EndKeepFirst:
		h.must, h.reason = machine.AsParked, semel.ReasonConflict
	case v.Kind == store.Stale:
		h.must, h.reason = machine.AsDiscarded, semel.ReasonStale
	case v.Kind == store.Behind:
		h.must, h.reason = machine.AsBlocked, semel.ReasonBehind
	case c.movedIn(f, h.delivery.message.stream):
		c.w.coverage.add("fault", "a version asks again after those of its flight")
	case h.claim != nil && h.claim.blocked:
		h.must, h.reason = machine.AsOverdue, semel.ReasonGap
	default:
		h.must, h.reason, h.after = machine.AsBlocked, semel.ReasonGap, c.p.config.Gap
		if most := c.p.config.GapCap; most != 0 && v.Missing > most {
			h.after = time.Millisecond
			c.w.coverage.add("fault", "a version too far ahead")
		}
	}
	if v.Kind == store.Stale {
		c.arose("B4")
		h.suspicion = suspicion{} // no run of its follows
	}
}

// passedInVain reports whether a mark of the flight was taken back that would have brought
// a message's stream to its version, or beyond.
func (f *flight) passedInVain(m *message) bool {
	return slices.ContainsFunc(f.trim, func(i int) bool {
		other, as := f.message(i), f.of.Entries[i].As
		moves := as == machine.AsApplied || as == machine.AsDuplicate || as == machine.AsDiscarded
		return f.verdicts[i].Kind == store.Fresh && moves && other.stream == m.stream && other.version >= m.version
	})
}

// movedIn reports whether a version of a stream has ended in a committed flight.
func (c *checker) movedIn(f *flight, stream string) bool {
	for i, e := range f.of.Entries {
		ended := e.As == machine.AsApplied || e.As == machine.AsDuplicate || e.As == machine.AsDiscarded
		if ended && f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i) && f.message(i).stream == stream {
			return true
		}
	}
	return false
}

// entryInTurn checks that a version that is out of its turn ends as it has to, and that
// no other waits for one.
func (c *checker) entryInTurn(e machine.Entry, h *handed) {
	waits := e.As == machine.AsBlocked || e.As == machine.AsOverdue
	switch {
	case h.must != 0 && e.As != h.must:
		c.broke(h.lawOfTurn(), "%s is marked as %s, and should be as %s (%s)", showItem(e.Item), word(asNames[:], e.As), word(asNames[:], h.must), h.reason)
	case h.must == 0 && waits:
		c.broke("B9", "%s is to wait for an earlier version, and nobody said that one is missing", showItem(e.Item))
	case e.As == machine.AsBlocked && h.reason == semel.ReasonBehind:
		c.arose("case 7")
	case e.As == machine.AsBlocked:
		c.arose("B9")
	case waits:
		c.arose("trap T55")
	}
}

// lawOfTurn is the law of how a version ends that is out of its turn.
func (h *handed) lawOfTurn() string {
	switch h.reason {
	case semel.ReasonGap:
		return "B9"
	case semel.ReasonBehind:
		return "case 7"
	case semel.ReasonExpired:
		return "H4"
	}
	return "B4"
}

// rowInTurn checks the row of a version that is out of its turn.
func (c *checker) rowInTurn(r machine.Row, h *handed) {
	if h.must == 0 || r.As != h.must || r.Repeat || r.Conflict {
		return
	}
	if r.Reason != h.reason {
		c.broke(h.lawOfTurn(), "the row of %s says %q, and should say %q", showItem(h.item), r.Reason, h.reason)
	}
	if h.reason == semel.ReasonBehind {
		return
	}
	if r.As == machine.AsBlocked && r.After != h.after {
		c.broke("trap T55", "%s is to wait for an earlier version for %v, and should for %v", showItem(h.item), r.After, h.after)
	}
}

// inOrder checks that what a flight commits of a stream are its next versions, each
// once.
func (c *checker) inOrder(f *flight) {
	applied := map[int]bool{}
	for _, x := range f.tx.effects {
		applied[x.entry] = !x.part
	}
	for i, e := range f.of.Entries {
		m := f.message(i)
		ended := f.verdicts[i].Kind == store.Fresh && !slices.Contains(f.trim, i)
		last := c.w.ledger[m.stream]
		switch {
		case m.version == 0 || c.p.config.Unmarked:
		case applied[i], ended && e.As == machine.AsDuplicate:
			c.arose("B9")
			if m.version != last+1 {
				c.broke("B9", "%s takes effect as version %d of %s, which is at %d", m.name(), m.version, m.stream, last)
			}
			c.w.ledger[m.stream] = m.version
		case ended && e.As == machine.AsDiscarded && f.following[i] && m.version == last+1:
			c.w.ledger[m.stream] = m.version
		case ended && e.As == machine.AsDiscarded && m.version > last:
			c.broke("B4", "%s is discarded as version %d of %s, which is at %d", m.name(), m.version, m.stream, last)
		}
		if at := c.w.store.stream(m.stream).at.version; m.version > 0 && f.last(i) && at != c.w.ledger[m.stream] {
			c.broke("B9", "%s is at %d in the store, and version %d has ended", m.stream, at, c.w.ledger[m.stream])
		}
	}
}

// last reports whether no later entry of the flight is of the same stream.
func (f *flight) last(entry int) bool {
	for i := entry + 1; i < len(f.of.Entries); i++ {
		if f.message(i).stream == f.message(entry).stream {
			return false
		}
	}
	return true
}

// passedOver reports whether a delivery has lost its place in its lane because its turn
// in its stream has not come, or is over.
func (c *checker) passedOver(f *flight, d *delivery) bool {
	late := c.w.passedBy[d.message.id] // and may be too old, although nothing ever became of it
	if d.message.version == 0 && !late {
		return false
	}
	for i, v := range f.verdicts {
		if f.message(i).id == d.message.id && early(v) && (d.message.version > 0 || v.Kind == store.Old) {
			return true
		}
	}
	return slices.ContainsFunc(c.hands, func(h *handed) bool {
		return h.out && h.delivery.message.id == d.message.id && (d.message.version > 0 || h.endsAsOld())
	})
}

// checkStreams looks, when all is over, whether something waits whose turn has come.
func (w *world) checkStreams() {
	for _, r := range w.store.inbox {
		if m := r.message; m.version > 0 && (r.overdue() || r.as == machine.AsBlocked) && m.version <= w.ledger[m.stream]+1 {
			w.broke("trap T55", "%s waits for a version before %d of %s, and that is at %d", m.name(), m.version, m.stream, w.ledger[m.stream])
		}
	}
}
