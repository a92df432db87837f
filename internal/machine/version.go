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

// atOnce is the delay of a row that should be claimed as soon as a worker is free.
const atOnce = time.Millisecond

// gap handles a version that is not next. If its stream has moved in this flight, it is marked again. Otherwise it
// is stored in the inbox by its worker's next flight, and the commit of the previous version unblocks it. A row
// that has waited for the maximum time is parked. The parking asks the store once more, because the previous
// version may have arrived meanwhile, and unblocking rows does not see a claim.
//
// A version with too many missing before it is due at once, so that its claim parks it.
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

// tooFar reports whether more versions are missing than allowed.
func (m *Machine) tooFar(gap store.Verdict) bool {
	most := m.config.GapCap
	return most > 0 && gap.Missing > most
}

// moved reports whether a version of the item's stream was applied in the flight.
func (m *Machine) moved(f *Flight, it *Item) bool {
	for i, en := range f.Entries {
		if f.verdicts[i].Kind == store.Fresh && en.As.moves() && it.inStreamOf(en.Item) {
			return true
		}
	}
	return false
}

// moves reports whether a version with this ending moves its stream.
func (a As) moves() bool { return a == AsApplied || a == AsDuplicate || a == AsDiscarded }

// stale ends a version that its stream has passed. If the stream is at the same version with other content, it is
// a conflict. If the version that passed it was trimmed in this flight, the item is marked again, because the
// stream has not moved.
func (m *Machine) stale(f *Flight, it *Item, v store.Verdict) {
	if passedInVain(f, it) {
		m.requeue(it)
		return
	}
	if t := it.trouble; t != nil {
		t.suspicion = suspicion{} // the handler will not run again
	}
	if v.Known && m.config.OnConflict != EndKeepFirst {
		it.failing().last = errTaken
		m.endAs(it, m.config.OnConflict, semel.ReasonConflict)
		return
	}
	m.endAs(it, EndDiscard, reasonname.Stale)
}

// passedInVain reports whether a trimmed mark of the flight would have moved the item's stream to its version or
// beyond.
func passedInVain(f *Flight, it *Item) bool {
	for i, en := range f.Entries {
		if f.verdicts[i].Kind == untouched && en.As.moves() && it.inStreamOf(en.Item) && en.Item.Version.Number >= it.Version.Number {
			return true
		}
	}
	return false
}

// outOfTurn reports whether an earlier version of the entry's stream, on which the entry depends, is trimmed in
// this flight.
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
