package machine

import (
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

var (
	errGap   = errors.New("an earlier version of its stream has not taken effect in time")
	errFar   = errors.New("it is further ahead of its stream than gap_cap allows")
	errTaken = errors.New("another content has taken effect with its version")
)

// atOnce is how long a row waits that is to be claimed as soon as there is a worker.
const atOnce = time.Millisecond

// gap keeps a version whose turn has not come. If its stream has moved in this flight it
// asks once more; otherwise it rides in its worker's next flight and waits in the inbox,
// where the commit frees it that brings its predecessor. What has waited there for as
// long as it may is parked, and asks its stream once more with that: its predecessor may
// have come since, and who frees what is blocked or parked does not see a claim.
//
// One before which too many are missing is due at once, so that the claim parks it.
func (m *Machine) gap(f *Flight, it *Item, v store.Verdict) {
	switch {
	case m.moved(f, it):
		m.requeue(it)
	case it.Claim != nil && it.Claim.Blocked:
		why := it.failing()
		why.reason, why.last = semel.ReasonGap, errGap
		if m.tooFar(v) {
			why.last = errFar
		}
		it.as, it.alone = AsOverdue, false
		m.requeue(it)
	default:
		why := it.failing()
		why.reason, why.after = semel.ReasonGap, m.config.Gap
		if m.tooFar(v) {
			why.after = atOnce
		}
		it.as, it.alone = AsBlocked, false
		m.requeue(it)
	}
}

// tooFar reports whether more versions are missing before one than may be.
func (m *Machine) tooFar(gap store.Verdict) bool {
	most := m.config.GapCap
	return most > 0 && gap.Missing > most
}

// moved reports whether a version of an item's stream took effect in a flight.
func (m *Machine) moved(f *Flight, it *Item) bool {
	for i, en := range f.Entries {
		if f.verdicts[i].Kind == store.Fresh && en.As.moves() && it.inStreamOf(en.Item) {
			return true
		}
	}
	return false
}

// moves reports whether a stream moves to a version that ends so.
func (a As) moves() bool { return a == AsApplied || a == AsDuplicate || a == AsDiscarded }

// stale ends a version that its stream has passed. Another content with the version
// that its stream is at is a conflict. If what passed it was taken back in this flight, it
// asks once more: the stream is not there.
func (m *Machine) stale(f *Flight, it *Item, v store.Verdict) {
	if passedInVain(f, it) {
		m.requeue(it)
		return
	}
	if t := it.trouble; t != nil {
		t.suspicion = suspicion{} // no run of its follows
	}
	if v.Known && m.config.OnConflict != EndKeepFirst {
		it.failing().last = errTaken
		m.endAs(it, m.config.OnConflict, semel.ReasonConflict)
		return
	}
	m.endAs(it, EndDiscard, reasonname.Stale)
}

// passedInVain reports whether a mark was taken back in a flight that would have brought an
// item's stream to its version, or beyond.
func passedInVain(f *Flight, it *Item) bool {
	for i, en := range f.Entries {
		if f.verdicts[i].Kind == untouched && en.As.moves() && it.inStreamOf(en.Item) && en.Item.Version.Number >= it.Version.Number {
			return true
		}
	}
	return false
}

// outOfTurn reports whether an earlier version of an entry's stream, on which it counted,
// is taken back in this flight.
func (m *Machine) outOfTurn(f *Flight, entry int) bool {
	it := f.Entries[entry].Item
	return it.Version != nil && slices.ContainsFunc(f.trim, func(i int) bool {
		en := &f.Entries[i]
		return i < entry && en.As.moves() && it.inStreamOf(en.Item) && en.Item.Version.Number < it.Version.Number
	})
}

// inStreamOf reports whether two items are versions of one stream.
func (it *Item) inStreamOf(other *Item) bool {
	return it.Version != nil && other.Version != nil && it.Version.Stream == other.Version.Stream && it.Source == other.Source
}
