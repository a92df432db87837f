package machine

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// splitFailed splits a batch at the message that failed (case 1). If that message is unknown, splitFailed halves the
// batch.
func (m *Machine) splitFailed(w *worker, f *Flight) {
	if f.culprit < 0 {
		w.batchLimit = max(1, f.suspects/2)
		m.undone(f, f.done)
		m.requeueAll(f)
		return
	}
	m.cut(w, f, f.culprit, *f.failure)
}

// cut splits a failed batch. The entries before the failed message run again as one batch. After this batch, the failed
// message runs alone for its next attempt. The remaining entries run in batches of a quarter of the size.
func (m *Machine) cut(w *worker, f *Flight, culprit int, failure Failure) {
	if culprit > 0 {
		w.beforeArrival = f.Entries[culprit].Item.arrival
	}
	w.batchLimit = quarter(len(f.Entries))
	m.undone(f, f.done)
	f.Entries[culprit].Item.rolledBack = false
	for i := len(f.Entries) - 1; i >= 0; i-- {
		if i != culprit {
			m.requeue(f.Entries[i].Item)
		}
	}
	m.blame(f.Entries[culprit].Item, failure, f.ran(culprit))
}

// ran reports whether the handler of the entry ran.
func (f *Flight) ran(entry int) bool { return f.handled && slices.Contains(f.fresh, entry) }

// undone records which handlers succeeded and were rolled back.
func (m *Machine) undone(f *Flight, done int) {
	for _, i := range f.fresh[:done] {
		f.Entries[i].Item.rolledBack = true
	}
}

// handleRefused handles a commit that the store rejected.
func (m *Machine) handleRefused(w *worker, f *Flight, e Ended) {
	if e.Class == store.ClassContended || e.Class == store.ClassDown {
		f.outside = e.Outside
		m.undone(f, f.done)
		m.runAgain(w, f, e.Class, e.Err, e.Culprit)
		return
	}
	culprit := e.Culprit
	if len(f.Entries) == 1 {
		culprit = 0
	}
	if culprit < 0 {
		w.batchLimit = max(1, len(f.Entries)/2)
		m.undone(f, f.done)
		m.requeueAll(f)
		return
	}
	class := e.Class
	if class == store.ClassAborted {
		class = store.ClassRetry
	}
	m.cut(w, f, culprit, Failure{Class: class, Decision: e.Decision, After: e.After, Reason: e.Reason, Err: e.Err})
}

// runAgain runs a failed batch again. The failure was probably not caused by a message. The message whose handler got
// the error is alone in its next batch. If that message was already alone, it is suspected. The parameter met is the
// index of the entry of that message, or -1 if the message is unknown.
func (m *Machine) runAgain(w *worker, f *Flight, why store.Class, err error, met int) {
	if why == store.ClassContended {
		m.do(Report{Kind: ReportContended, N: len(f.Entries), Err: err})
		if t := f.Entries[0].Item.trouble; t == nil || t.suspicion.provenFailures == 0 {
			m.serialise()
		}
	}
	// The store only refused to commit, which hardly shows that a message is the cause.
	refused := f.class == store.ClassNone && met < 0
	if met >= 0 && f.ran(met) {
		f.Entries[met].Item.runAlone = true
	}
	full := why == store.ClassDown && f.outside // such as a full disk: every message would fail
	switch {
	case !full && len(f.Entries) == 1 && f.ran(0):
		m.runAloneAgain(w, f, why, err, refused)
	case why == store.ClassContended, !full && m.config.OneAttempt && f.handled:
		// Returned messages are delivered again in another batch, so the message that caused the failure is
		// never alone. If the store is down, the next transaction does not open.
		m.backOff(w, f)
		m.requeueAll(f)
	default:
		w.batchLimit = quarter(len(f.Entries))
		m.standDown(f, err, true)
	}
}

// runAloneAgain is runAgain for a message that was alone in its batch.
func (m *Machine) runAloneAgain(w *worker, f *Flight, why store.Class, err error, refused bool) {
	enough := enoughMet
	if refused {
		enough = enoughRefused
	}
	switch {
	case why == store.ClassContended:
		m.backOff(w, f)
	case refused && !m.config.OneAttempt:
		m.goDown(f, err, true)
	}
	it := f.Entries[0].Item
	if !f.outside {
		m.suspect(it, enough, err)
	} else { // these failures never count as attempts, so they must be reported
		m.tellWaiting(it, ReportWaits, err)
	}
	m.waitAlone(w, it)
}
