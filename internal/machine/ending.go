package machine

import "slices"

// rows lists the inbox rows that go with a flight's commit.
func (m *Machine) rows(f *Flight) []Row {
	var rows []Row
	for i, en := range f.Entries {
		switch it, v := en.Item, f.verdicts[i]; v {
		case Fresh:
			if en.As != AsApplied && en.As != AsDuplicate {
				rows = append(rows, Row{Entry: i, As: en.As, Reason: it.reason, Attempts: it.attempts, First: it.first, Last: it.last})
				rows = m.repeats(rows, i, it, false)
			}
		case AlreadyWaiting, AlreadyParked, AlreadyDeadLettered, AlreadyDiscarded:
			if !m.own(en, v) {
				rows = append(rows, Row{Entry: i, Repeat: true})
			}
			rows = m.repeats(rows, i, it, false)
		case Conflict, ConflictKnown:
			if !m.keepsConflict(it, v) {
				continue
			}
			if v == Conflict {
				rows = append(rows, Row{Entry: i, Conflict: true, As: m.asConflict(), Reason: ReasonConflict})
			} else if !m.own(en, v) {
				rows = append(rows, Row{Entry: i, Conflict: true, Repeat: true})
			}
			rows = m.repeats(rows, i, it, true)
		}
	}
	return rows
}

// keepsConflict reports whether a conflict goes into a row with this commit: one
// to be dead-lettered does when its copy is there.
func (m *Machine) keepsConflict(it *Item, v Verdict) bool {
	switch m.config.OnConflict {
	case ThenPark:
		return true
	case ThenDeadLetter:
		return v == ConflictKnown || it.copied
	}
	return false
}

// asConflict is how a conflict's row ends.
func (m *Machine) asConflict() As {
	if m.config.OnConflict == ThenDeadLetter {
		return AsDeadLettered
	}
	return AsParked
}

// ReasonConflict is the reason of a row whose identity has another content.
const ReasonConflict = "conflict"

// repeats counts the riders of an item on its row. Those that come later are
// marked themselves and counted then.
func (m *Machine) repeats(rows []Row, i int, it *Item, conflict bool) []Row {
	for _, r := range it.riders {
		if r.carrier == it && r.Print == it.Print && !r.counted {
			r.counted = true
			rows = append(rows, Row{Entry: i, Conflict: conflict, Repeat: true})
		}
	}
	return rows
}

// uncount takes back what repeats said of a commit that did not happen.
func (it *Item) uncount() {
	for _, r := range it.riders {
		r.counted = false
	}
}

// ended takes what became of a flight's transaction.
func (m *Machine) ended(e Ended) {
	f := e.Flight
	w := m.land(f)
	if e.Outcome == NotCommitted {
		for _, en := range f.Entries {
			en.Item.uncount()
		}
	}
	switch {
	case e.Outcome == Committed:
		m.committed(w, f)
	case e.Outcome == Unknown:
		m.unknown(w, f, e.Err)
	case f.failure != nil:
		m.failed(w, f)
	case f.why != None:
		m.undone(f, f.done)
		m.nobodys(w, f, f.why, f.cause, f.culprit)
	default:
		m.refused(w, f, e)
	}
}

// committed settles what the flight did and queues again what it did not.
func (m *Machine) committed(w *worker, f *Flight) {
	m.up()
	m.commits++
	w.limit = min(w.limit*2, m.config.Most)
	w.contended = 0
	m.do(Report{Kind: ReportCommitted, N: len(f.Entries)})
	for i := len(f.Entries) - 1; i >= 0; i-- {
		if f.verdicts[i] == untouched {
			m.requeue(f.Entries[i].Item)
		}
	}
	for i, en := range f.Entries {
		switch v := f.verdicts[i]; {
		case v == untouched:
		case v == Busy:
			m.holdBusy(en.Item)
		case (v == Conflict || v == ConflictKnown) && m.config.OnConflict == ThenHalt:
			en.Item.reason = ReasonConflict
			m.halt(en.Item)
		case v == Conflict && m.config.OnConflict == ThenDeadLetter && !en.Item.copied:
			m.endAs(en.Item, ThenDeadLetter, ReasonConflict)
		default:
			m.conclude(en, v)
		}
	}
}

// own reports whether what a mark found is what a commit of unknown outcome of
// this very item left there: seen is counted as done, and as no copy (case 3).
func (m *Machine) own(en Entry, v Verdict) bool {
	if !en.Item.unknown {
		return false
	}
	switch v {
	case AlreadyApplied:
		return en.As == AsApplied
	case AlreadyParked:
		return en.As == AsParked
	case AlreadyDiscarded:
		return en.As == AsDiscarded
	case AlreadyDeadLettered:
		return en.As == AsDeadLettered
	}
	return v == ConflictKnown
}

// endingOf says how a delivery ended.
func (m *Machine) endingOf(en Entry, v Verdict) Ending {
	switch {
	case v == Conflict, v == ConflictKnown && m.config.OnConflict == ThenAcceptFirst:
		return EndConflict
	case v != Fresh && !m.own(en, v):
		return EndDuplicate
	case v == ConflictKnown:
		return EndConflict
	}
	switch en.As {
	case AsParked:
		return EndParked
	case AsDiscarded:
		return EndDiscarded
	case AsDeadLettered:
		return EndDeadLettered
	case AsDuplicate:
		m.do(Report{Kind: ReportBackstop, Item: en.Item, Err: en.Item.last})
		return EndDuplicate
	}
	return EndApplied
}

// conclude settles an item, and its riders as duplicates, where its commit
// speaks for them: of the same content, and counted if a row counts. The others
// ask the store themselves.
func (m *Machine) conclude(en Entry, v Verdict) {
	it := en.Item
	riders := m.unload(it)
	if m.carriers[it.key()] == it {
		delete(m.carriers, it.key())
	}
	m.settle(it, Settlement{Kind: Ack, Ending: m.endingOf(en, v), Reason: it.reason, Err: it.last})
	rowless := v == AlreadyApplied || v == Fresh && (en.As == AsApplied || en.As == AsDuplicate)
	var rest []*Item
	for _, r := range riders {
		if r.Print == it.Print && (r.counted || rowless) {
			r.carrier = nil
			m.unblock(r)
			m.settle(r, Settlement{Kind: Ack, Ending: EndDuplicate})
			continue
		}
		rest = append(rest, r)
	}
	m.promote(rest)
}

// failed cuts a flight at the message to blame (case 1), or halves it when the
// culprit is not known.
func (m *Machine) failed(w *worker, f *Flight) {
	if f.culprit < 0 {
		w.limit = max(1, f.suspects/2)
		m.undone(f, f.done)
		m.requeueAll(f)
		return
	}
	m.cut(w, f, f.culprit, *f.failure)
}

// cut runs the entries before the culprit again as one flight, the culprit
// alone at its next try, and the rest next in flights of a quarter.
func (m *Machine) cut(w *worker, f *Flight, culprit int, failure Failure) {
	if culprit > 0 {
		w.before = f.Entries[culprit].Item.arrival
	}
	w.limit = quarter(len(f.Entries))
	m.undone(f, f.done)
	f.Entries[culprit].Item.rolledBack = false
	for i := len(f.Entries) - 1; i >= 0; i-- {
		if i != culprit {
			m.requeue(f.Entries[i].Item)
		}
	}
	m.blame(f.Entries[culprit].Item, failure, f.ran(culprit))
}

// ran reports whether a handler ran for the entry.
func (f *Flight) ran(entry int) bool { return f.handled && slices.Contains(f.fresh, entry) }

// undone remembers which handlers ran for nothing.
func (m *Machine) undone(f *Flight, done int) {
	for _, i := range f.fresh[:done] {
		f.Entries[i].Item.rolledBack = true
	}
}

// refused takes a commit that the store refused.
func (m *Machine) refused(w *worker, f *Flight, e Ended) {
	if e.Class == Contended || e.Class == Down {
		f.outside = e.Outside
		m.undone(f, f.done)
		m.nobodys(w, f, e.Class, e.Err, e.Culprit)
		return
	}
	culprit := e.Culprit
	if len(f.Entries) == 1 {
		culprit = 0
	}
	if culprit < 0 {
		w.limit = max(1, len(f.Entries)/2)
		m.undone(f, f.done)
		m.requeueAll(f)
		return
	}
	class := e.Class
	if class == Aborted {
		class = Retry
	}
	m.cut(w, f, culprit, Failure{Class: class, Decision: e.Decision, After: e.After, Reason: e.Reason, Err: e.Err})
}

// nobodys runs a flight again that failed through no message's fault, as far as
// is known: who met the failure is alone in its next flight, and who is alone
// is suspected. met is the entry of who met it, -1 if nobody is known to.
func (m *Machine) nobodys(w *worker, f *Flight, why Class, err error, met int) {
	if why == Contended {
		m.do(Report{Kind: ReportContended, N: len(f.Entries), Err: err})
		if f.Entries[0].Item.suspicion.proven == 0 {
			m.serialise()
		}
	}
	// The store only refused to commit: that says little of the messages.
	refused := f.why == None && met < 0
	if met >= 0 && f.ran(met) {
		f.Entries[met].Item.alone = true
	}
	full := why == Down && f.outside // as of its disk: any message would meet it
	switch {
	case !full && len(f.Entries) == 1 && f.ran(0):
		m.metAlone(w, f, why, err, refused)
	case why == Contended, !full && m.config.OneAttempt && f.handled:
		// What is handed back comes again in another batch, and who met it is
		// never alone. If the store is down, the next transaction does not open.
		m.contention(w, f)
		m.requeueAll(f)
	default:
		w.limit = quarter(len(f.Entries))
		m.standDown(f, err, true)
	}
}

// metAlone is nobodys for a message that was alone.
func (m *Machine) metAlone(w *worker, f *Flight, why Class, err error, refused bool) {
	enough := enoughMet
	if refused {
		enough = enoughRefused
	}
	switch {
	case why == Contended:
		m.contention(w, f)
	case refused && !m.config.OneAttempt:
		m.goDown(f, err, true)
	}
	it := f.Entries[0].Item
	if !f.outside {
		m.suspect(it, enough, err)
	} else { // nobody is charged, however long it lasts: it has to be seen
		m.tellWaiting(it, ReportWaits, err)
	}
	m.waitAlone(w, it)
}

// unknown marks again, in a new transaction, all that may have been committed.
func (m *Machine) unknown(w *worker, f *Flight, err error) {
	m.do(Report{Kind: ReportUnknown, N: len(f.Entries), Err: err})
	for i, en := range f.Entries {
		if v := f.verdicts[i]; v == Fresh || v == Conflict && m.keepsConflict(en.Item, v) {
			en.Item.unknown = true
		}
	}
	w.limit = quarter(len(f.Entries)) // it may have been too long for its time
	m.undone(f, f.done)
	m.contention(w, f)
	m.requeueAll(f)
}
