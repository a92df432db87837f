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

// atOnce is the delay of a row that must be claimed as soon as a worker is free.
const atOnce = time.Millisecond

// handleGap handles a version whose predecessor was not applied. If another version of the stream was applied in the
// same batch, the item is marked again. If no other version was applied in the batch, the next batch of the worker
// stores the item in the inbox, and the commit of the predecessor unblocks the version. A row that has waited for the
// maximum time is parked. The statement that parks the row checks once more whether the predecessor was applied,
// because unblocking does not find claimed rows.
//
// A version with too many missing predecessors is due at once, so that it is claimed and parked.
func (m *Machine) handleGap(f *Flight, it *Item, v store.Verdict) {
	switch {
	case m.moved(f, it):
		m.requeue(it)
	case it.Claim != nil && it.Claim.Blocked:
		why := it.ensureFailure()
		why.reason, why.last = semel.ReasonGap, errGap
		if m.tooFar(v) {
			why.last = errFar
		}
		it.markAs, it.runAlone = AsOverdue, false
		m.requeue(it)
	default:
		why := it.ensureFailure()
		why.reason, why.after = semel.ReasonGap, m.config.Gap
		if m.tooFar(v) {
			why.after = atOnce
		}
		it.markAs, it.runAlone = AsBlocked, false
		m.requeue(it)
	}
}

// tooFar reports whether more versions are missing than allowed.
func (m *Machine) tooFar(gap store.Verdict) bool {
	most := m.config.GapCap
	return most > 0 && gap.Missing > most
}

// moved reports whether a version of the item's stream was applied in the batch.
func (m *Machine) moved(f *Flight, it *Item) bool {
	for i, en := range f.Entries {
		if f.verdicts[i].Kind == store.Fresh && en.As.moves() && it.inStreamOf(en.Item) {
			return true
		}
	}
	return false
}

// moves reports whether a version that ends with the outcome a advances its stream.
func (a As) moves() bool { return a == AsApplied || a == AsDuplicate || a == AsDiscarded }

// endStale ends a version that is not higher than its stream's last version. If the stream is at the same
// version with other content, the message is a conflict. If the higher version was removed from the batch again, the
// item is marked again, because the stream was not advanced.
func (m *Machine) endStale(f *Flight, it *Item, v store.Verdict) {
	if passedInVain(f, it) {
		m.requeue(it)
		return
	}
	if t := it.trouble; t != nil {
		t.suspicion = suspicion{} // the handler will not run again
	}
	if v.Known && m.config.OnConflict != EndKeepFirst {
		it.ensureFailure().last = errTaken
		m.endAs(it, m.config.OnConflict, semel.ReasonConflict)
		return
	}
	m.endAs(it, EndDiscard, reasonname.Stale)
}

// passedInVain reports whether an entry that was removed from the batch would have advanced the item's stream
// to the item's version or beyond.
func passedInVain(f *Flight, it *Item) bool {
	for i, en := range f.Entries {
		if f.verdicts[i].Kind == untouched && en.As.moves() && it.inStreamOf(en.Item) && en.Item.Version.Number >= it.Version.Number {
			return true
		}
	}
	return false
}

// outOfTurn reports whether an earlier version of the entry's stream was removed from the batch, without which the
// entry cannot be applied.
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
