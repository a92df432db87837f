package machine

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// flightState is the machine's private part of a Flight.
type flightState struct {
	verdicts []store.Verdict
	fresh    []int // entries to run, in order
	done     int   // number of entries that ran
	running  bool
	handled  bool // the machine returned Run
	stopped  bool // the machine returned StopRun
	cut      bool // a handler, or a callback of the commit, exceeded its timeout, and the connection was closed
	sticks   bool // if cut is set: the handler or callback still runs
	empty    bool // the batch runs no handler, and finds out whether the store works
	trim     []int

	// The failure of the batch's handlers, if any. If a message caused the failure, the field failure is set. If no
	// message caused the failure, class is set.

	// failure is the failure of a message. The batch is split at the failed message; see rollback.go.
	failure *Failure
	// class is Contended or Down: all entries run again, and the failure does not count as an attempt. The
	// field cause is the error, and outside is Failure.Outside.
	class   store.Class
	cause   error
	outside bool
	// culprit is the index of an entry. If the field failure is set, culprit is the message that failed, or -1 if the
	// message is unknown. If class is set, culprit is the message whose handler got the error; that message is
	// at most suspected.
	culprit int
	// suspects is used if failure is set and culprit is unknown: the number of entries, counted from the first, that
	// may have caused the failure. The batch is halved until it has one message.
	suspects int
}

func (f *Flight) holds(l *lane) bool {
	for i := range f.Entries {
		if f.Entries[i].Item.lane == l {
			return true
		}
	}
	return false
}

// handleMarked handles the results of writing the markers. For each entry whose marker was new, the handler is
// started.
func (m *Machine) handleMarked(e Marked) {
	f := e.Flight
	if e.Class != store.ClassNone {
		m.handleNotBegun(e)
		return
	}
	m.recordBegun(f)
	f.verdicts = append(f.verdicts[:0], e.Verdicts...)
	m.sift(f)
	if len(f.fresh) == 0 || f.empty || f.stopped || m.end.stopping {
		m.commit(f)
		return
	}
	for _, i := range f.fresh {
		it := f.Entries[i].Item
		if it.rolledBack {
			m.counts.Rerun++
		}
		if it.nextRunCounts {
			m.counts.Retried++
		}
		if it.attempts == 0 && !it.wasTried {
			m.recordFirstAttempt()
		}
		it.rolledBack, it.nextRunCounts, it.wasTried = false, false, true
	}
	f.running, f.handled = true, true
	m.do(Run{Flight: f, Fresh: f.fresh, Budget: m.config.BatchTime})
}

// handleNotBegun ends a batch whose transaction was not opened. A transaction that was not opened does not count as an
// attempt.
func (m *Machine) handleNotBegun(e Marked) {
	f := e.Flight
	w := m.land(f)
	switch {
	case e.CopyBusy:
		m.endOutage()
		if len(f.Entries) == 1 {
			m.holdBusy(f.Entries[0].Item)
			break
		}
		w.batchLimit = quarter(len(f.Entries))
		m.requeueAll(f)
	case e.Class == store.ClassContended:
		m.endOutage()
		m.backOff(w, f)
		m.requeueAll(f)
	default:
		m.outages++
		m.standDown(f, e.Err, false)
	}
	m.mayLeaveAgain(f, 0)
}

// sift selects the entries that run. An entry runs if its marker is new, and if no earlier message of its
// ordered key or lane must wait. If an entry has a new marker but must not run, the marker is removed again.
func (m *Machine) sift(f *Flight) {
	var waited []*line
	f.fresh = make([]int, 0, len(f.Entries))
	for i, en := range f.Entries {
		v := f.verdicts[i]
		if v.Kind != store.Newer {
			m.known(en.Item)
		}
		if v.Kind != store.Busy && !m.isOwnMarker(en, v) {
			en.Item.uncount()
		}
		if en.Item.line.ordered && (mustWait(v) || v.Kind == store.Conflict && m.config.OnConflict == EndHalt) {
			waited = append(waited, en.Item.line)
			continue
		}
		if v.Kind == store.Gap || v.Kind == store.Stale || v.Kind == store.Behind || v.Kind == store.Old {
			en.Item.unknown = false
		}
		if v.Kind == store.Old && m.config.Block && en.Item.line.ordered { // later messages of the key or lane go to the inbox
			waited = append(waited, en.Item.line)
		}
		if v.Kind != store.Fresh {
			continue
		}
		en.Item.unknown = false
		switch {
		case slices.Contains(waited, en.Item.line):
			f.trim = append(f.trim, i)
		case m.outOfTurn(f, i):
			f.trim = append(f.trim, i)
			if en.Item.line.ordered { // later messages of the key or lane must wait
				waited = append(waited, en.Item.line)
			}
		case en.As == AsApplied:
			f.fresh = append(f.fresh, i)
		}
	}
}

// mustWait reports whether the store cannot say how an identity ended, so that the message must wait and the store is
// asked again.
func mustWait(v store.Verdict) bool { return v.Kind == store.Busy || v.Kind == store.Newer }

// handleRan handles the end of a batch's handlers.
func (m *Machine) handleRan(e Ran) {
	f := e.Flight
	f.running = false
	m.stick(f, false)
	if f.cut && !m.handlersStick() {
		m.do(Report{Kind: ReportReady, Part: "handler"})
	}
	f.done = e.Done
	for _, i := range f.fresh {
		if c := f.Entries[i].Item.Claim; c != nil {
			c.stepped = slices.Contains(e.Stepped, i)
		}
	}
	if !e.Failed {
		if e.Done < len(f.fresh) && !f.stopped {
			// The time of the batch was used up. The commit doubles the limit, so the next batch gets about as many
			// entries as the handlers could process in time.
			m.workers[f.Worker].batchLimit = max(1, (e.Done+1)/2)
		}
		m.commit(f)
		return
	}
	failure := e.Failure
	f.failure = &failure
	f.culprit = -1
	switch {
	case e.Class == store.ClassContended || e.Class == store.ClassDown:
		f.class, f.cause, f.outside, f.failure = e.Class, e.Err, e.Outside, nil
		if !e.Whole {
			f.culprit = f.fresh[e.Done]
		}
	case e.Class == store.ClassClaimLost:
		f.class, f.failure = e.Class, nil
	case e.Whole:
		f.suspects = len(f.fresh)
	case e.Class == store.ClassAborted:
		f.suspects = e.Done + 1
	default:
		f.culprit = f.fresh[e.Done]
	}
	if f.failure != nil && f.suspects == 1 {
		f.culprit = f.fresh[0]
	}
	m.do(Rollback{Flight: f})
}

// handleStuck closes the connection of a handler that does not return. The worker and the lanes of the batch wait until
// the handler returns (case 10). For a callback of a commit, the engine has already closed the connection.
func (m *Machine) handleStuck(e Stuck) {
	f := e.Flight
	if !f.running && !e.Committing {
		return
	}
	f.cut = true
	m.stick(f, true)
	if e.Committing {
		return
	}
	m.do(Kill{Flight: f})
	if e.Item != nil {
		m.do(Report{Kind: ReportStuck, Item: e.Item, N: 1})
		return
	}
	m.do(Report{Kind: ReportStuck, Item: f.Entries[f.fresh[0]].Item, N: len(f.fresh)})
}
