package machine

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// commit commits a batch. The transaction of the batch also removes the markers of messages whose handlers did not run,
// and writes rows.
func (m *Machine) commit(f *Flight) {
	f.trim = append(f.trim, f.fresh[f.done:]...)
	var early []int // entries that may not run: versions whose predecessor is missing, and messages that are too old
	for i, en := range f.Entries {
		switch v := f.verdicts[i]; {
		case v.Kind == store.Gap || v.Kind == store.Stale || v.Kind == store.Behind || v.Kind == store.Old:
			early = append(early, i)
		case v.Kind == store.Fresh && en.As != AsApplied && !slices.Contains(f.trim, i) && m.outOfTurn(f, i):
			f.trim = append(f.trim, i)
		}
	}
	for _, i := range f.trim {
		f.verdicts[i].Kind = untouched
	}
	if m.config.Block {
		m.keepPlaces(f)
	}
	m.do(Commit{Flight: f, Trim: append(f.trim, early...), Rows: m.rows(f)})
}

// untouched replaces the store's answer for an entry whose marker is removed again by the commit.
const untouched store.VerdictKind = 0

// rows returns the inbox rows that a batch's commit writes.
func (m *Machine) rows(f *Flight) []Row {
	var rows []Row
	for i, en := range f.Entries {
		switch it, v := en.Item, f.verdicts[i]; v.Kind {
		case store.Fresh:
			if it.Claim != nil || m.keeps(en.As) {
				why := it.failureOrZero()
				rows = append(rows, Row{Entry: i, As: en.ends(), Reason: why.reason, Attempts: m.attempted(en), After: why.after, First: why.first, Last: why.last})
				rows = m.repeats(rows, i, it, false)
			}
		case store.Seen:
			if it.Claim != nil {
				if !v.Known { // other code has applied the message, so the claim ends as a duplicate
					rows = append(rows, Row{Entry: i, As: AsDuplicate, Attempts: int(it.attempts)})
				}
				continue
			}
			if v.Was == store.Applied && !m.config.Keep {
				continue // duplicates have no row
			}
			if !m.isOwnMarker(en, v) {
				rows = append(rows, Row{Entry: i, Repeat: true})
			}
			rows = m.repeats(rows, i, it, false)
		case store.Conflict:
			if !m.keepsConflict(it, v) {
				continue
			}
			if !v.Known {
				rows = append(rows, Row{Entry: i, Conflict: true, As: m.asConflict(), Reason: conflictOf(v)})
			} else if !m.isOwnMarker(en, v) {
				rows = append(rows, Row{Entry: i, Conflict: true, Repeat: true})
			}
			rows = m.repeats(rows, i, it, true)
		}
	}
	return rows
}

// ends returns how the commit ends the entry. The commit of a step ends only the claim; the commit of the last step
// ends the message.
func (en *Entry) ends() As {
	if c := en.Item.Claim; en.As == AsApplied && c != nil && c.stepped {
		return AsStepped
	}
	return en.As
}

// keeps reports whether the store has a row of an ended message. The parameter as is the outcome of the message.
func (m *Machine) keeps(as As) bool { return m.config.Keep || as != AsApplied && as != AsDuplicate }

// attempted returns the number of attempts for an entry's row, including the run in this batch.
func (m *Machine) attempted(en Entry) int {
	if en.As == AsApplied {
		return en.Item.Attempt()
	}
	return int(en.Item.attempts)
}

// keepsConflict reports whether the commit writes a row for a conflict. The row of a conflict that is dead-lettered is
// written later, after the copy exists in the dead-letter topic.
func (m *Machine) keepsConflict(it *Item, v store.Verdict) bool {
	switch m.config.OnConflict {
	case EndPark:
		return true
	case EndDeadLetter:
		return v.Known || it.copied
	}
	return false
}

// conflictOf returns the reason with which a conflict is stored.
func conflictOf(v store.Verdict) semel.Reason {
	if v.Former {
		return reasonname.FormerConflict
	}
	return semel.ReasonConflict
}

// asConflict returns the state in which the row of a conflict is written.
func (m *Machine) asConflict() As {
	if m.config.OnConflict == EndDeadLetter {
		return AsDeadLettered
	}
	return AsParked
}

// repeats adds, to the item's row, the number of copies that wait for the item. Copies that arrive later are marked and
// counted by a later batch.
func (m *Machine) repeats(rows []Row, i int, it *Item, conflict bool) []Row {
	for _, r := range it.riders.items() {
		if it.riders.has(r) && it.copies(r) && !r.counted {
			r.counted = true
			rows = append(rows, Row{Entry: i, Conflict: conflict, Repeat: true})
		}
	}
	return rows
}

// copies reports whether a waiting message is a copy of the item with the same content, so that the item's commit also
// ends the copy. A message that waits only because of its previous identity is not a copy: the store decides about it.
func (it *Item) copies(rider *Item) bool {
	return rider.Print == it.Print && rider.Source == it.Source && rider.Identity == it.Identity
}

// uncount reverses repeats after a commit that failed.
func (it *Item) uncount() {
	for _, r := range it.riders.items() {
		r.counted = false
	}
}

// handleEnded handles the end of a batch's transaction.
func (m *Machine) handleEnded(e Ended) {
	f := e.Flight
	w := m.land(f)
	if e.Outcome == store.NotCommitted {
		for _, en := range f.Entries {
			en.Item.uncount()
		}
	}
	switch {
	case e.Outcome == store.Committed:
		m.handleCommitted(w, f)
		if e.Freed {
			m.recordDue(m.now)
		}
	case e.Outcome == store.CommitUnknown:
		m.requeueUnknown(w, f, e.Err)
	case f.failure != nil:
		m.splitFailed(w, f)
	case f.class == store.ClassClaimLost, f.class == store.ClassNone && e.Class == store.ClassClaimLost:
		// A lost claim does not count as an attempt. The next Begin reports which claim was lost. The items whose
		// claims are valid run again.
		m.undone(f, f.done)
		m.requeueAll(f)
	case f.class != store.ClassNone:
		m.undone(f, f.done)
		m.runAgain(w, f, f.class, f.cause, f.culprit)
	default:
		m.handleRefused(w, f, e)
	}
	m.mayLeaveAgain(f, e.Until)
}

// handleCommitted ends the items that the batch ended, and queues the other items again.
func (m *Machine) handleCommitted(w *worker, f *Flight) {
	m.endOutage()
	m.commits++
	if f.done > 0 {
		m.trySucceeded()
	}
	w.batchLimit = min(w.batchLimit*2, m.config.Most)
	w.contended = 0
	m.do(Report{Kind: ReportCommitted, N: len(f.Entries)})
	for i := len(f.Entries) - 1; i >= 0; i-- {
		if f.verdicts[i].Kind == untouched {
			m.requeue(f.Entries[i].Item)
		}
	}
	m.settles.now = slices.Grow(m.settles.now, len(f.Entries))
	for i, en := range f.Entries {
		switch v := f.verdicts[i]; {
		case v.Kind == untouched:
		case v.Kind == store.Busy:
			m.holdBusy(en.Item)
		case v.Kind == store.Newer:
			m.holdNewer(en.Item, v)
		case v.Kind == store.ClaimLost:
			m.loseClaim(en.Item)
		case v.Kind == store.Gap:
			m.handleGap(f, en.Item, v)
		case v.Kind == store.Stale:
			m.endStale(f, en.Item, v)
		case v.Kind == store.Behind:
			m.standBehind(en.Item)
		case v.Kind == store.Old:
			m.endExpired(en.Item, v.Ahead)
		case v.Kind == store.Conflict && m.config.OnConflict == EndHalt:
			en.Item.ensureFailure().reason = conflictOf(v)
			m.halt(en.Item)
		case v.Kind == store.Conflict && !v.Known && m.config.OnConflict == EndDeadLetter && !en.Item.copied:
			if t := en.Item.trouble; t != nil {
				t.suspicion = suspicion{} // the handler will not run again
			}
			m.endAs(en.Item, EndDeadLetter, conflictOf(v))
		default:
			m.conclude(en, v)
		}
	}
}

// isOwnMarker reports whether the found marker was written by an earlier commit of the same item, whose outcome was
// unknown. If so, the store's answer Seen means that the item itself was applied and is not a duplicate (case 3).
func (m *Machine) isOwnMarker(en Entry, v store.Verdict) bool {
	switch {
	case !en.Item.unknown:
		return false
	case v.Kind == store.Seen && (v.Former || en.Item.conflicted()):
		return false // for a conflict no marker is written
	case v.Kind == store.Seen && en.Item.Claim != nil:
		return v.Known && en.As != AsDuplicate
	case v.Kind == store.Seen && en.As.Outcome() == store.Waiting:
		return true // another process may have claimed the row after that commit, and ended it
	case v.Kind == store.Seen:
		return en.As != AsDuplicate && v.Was == en.As.Outcome()
	}
	return v.Kind == store.Conflict && v.Known
}

// Ending returns how entry i ends if the batch's commit succeeds, and why. If the entry does not end, the result is
// source.EndUnknown. Ending reads only data that do not change before the end of the batch, so the engine may call
// Ending during the commit.
func (m *Machine) Ending(f *Flight, i int) (source.End, semel.Reason) {
	en, v := f.Entries[i], f.verdicts[i]
	switch v.Kind {
	case store.Fresh, store.Seen, store.Conflict:
		end := m.endingOf(en, v)
		switch {
		case end == source.EndConflict:
			return end, conflictOf(v)
		case end == source.EndDuplicate:
			return end, reasonname.None
		}
		return end, en.Item.failureOrZero().reason
	}
	return source.EndUnknown, reasonname.None
}

func (m *Machine) endingOf(en Entry, v store.Verdict) source.End {
	switch {
	case v.Kind == store.Conflict && (!v.Known || m.config.OnConflict == EndKeepFirst):
		return source.EndConflict
	case v.Kind != store.Fresh && !m.isOwnMarker(en, v):
		return source.EndDuplicate
	case v.Kind == store.Conflict:
		return source.EndConflict
	}
	switch en.ends() {
	case AsParked, AsOverdue:
		return source.EndParked
	case AsDiscarded:
		return source.EndDiscarded
	case AsDeadLettered:
		return source.EndDeadLettered
	case AsReceived:
		return source.EndReceived
	case AsWaiting, AsBlocked:
		return source.EndWaiting
	case AsStepped:
		return source.EndStepped
	case AsDuplicate:
		return source.EndDuplicate
	}
	return source.EndApplied
}

// conclude ends an item. The commit also ends, as duplicates, those waiting copies of the item that have the same
// content and are counted in the row, if there is a row. For other waiting copies, the store is asked.
func (m *Machine) conclude(en Entry, v store.Verdict) {
	it := en.Item
	riders := m.unload(it)
	why, end := it.failureOrZero(), m.endingOf(en, v)
	if v.Kind == store.Fresh && en.ends() == AsDuplicate {
		m.do(Report{Kind: ReportBackstop, Item: it, Err: why.last})
	}
	switch end {
	case source.EndReceived, source.EndStepped:
		m.recordDue(m.now)
	case source.EndWaiting:
		if why.after > 0 || en.As != AsBlocked { // a blocked row is reported by the later commit that unblocks it
			m.recordDue(m.now + why.after)
		}
	}
	if end == source.EndConflict && v.Former {
		why.reason = conflictOf(v)
	}
	m.settle(it, Settlement{Kind: semel.Ack, Ending: end, Reason: why.reason, Err: why.last})
	rowless := v.Already(store.Applied) && !m.config.Keep || v.Kind == store.Fresh && !m.keeps(en.As)
	var rest []*Item
	for _, r := range riders {
		if it.copies(r) && (r.counted || rowless) {
			m.settleCopy(r)
			continue
		}
		rest = append(rest, r)
	}
	m.promote(rest)
}

// requeueUnknown queues the items of a commit with unknown outcome again. A new transaction will show whether the items
// are marked.
func (m *Machine) requeueUnknown(w *worker, f *Flight, err error) {
	m.do(Report{Kind: ReportUnknown, N: len(f.Entries), Err: err})
	for i, en := range f.Entries {
		if v := f.verdicts[i]; v.Kind == store.Fresh || v.Kind == store.Conflict && !v.Known && m.keepsConflict(en.Item, v) {
			en.Item.doubt(v.Kind == store.Conflict)
		}
	}
	w.batchLimit = quarter(len(f.Entries)) // the batch may have been too large for its timeout
	m.undone(f, f.done)
	m.backOff(w, f)
	m.requeueAll(f)
}
