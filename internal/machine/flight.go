package machine

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// flightState is the machine's own part of a Flight.
type flightState struct {
	verdicts []store.Verdict
	fresh    []int // entries whose handlers run, in order
	done     int   // how many of them did
	running  bool
	handled  bool // Run was said
	stopped  bool // StopRun was said
	cut      bool // its handler, or a callback of its commit, went on after its timeout: its connection is cut
	sticks   bool // with cut: it still goes on
	empty    bool // it runs no handler: it asks whether the store works
	trim     []int

	// How its handlers failed, nothing of it if they did not: either a message is
	// to blame, which failure says, or nobody is, which why says.

	// failure is a message's: rollback.go cuts the flight at who is to blame.
	failure *Failure
	// why is Contended or Down: all run again, and nobody is charged. cause is its
	// error, for people; outside is as in Failure: it surely is no message's doing.
	why     store.Class
	cause   error
	outside bool
	// culprit is an entry. With failure it is who is charged, -1 where that is not
	// known; with why it is whose handler met it, who is suspected at most.
	culprit int
	// suspects, with failure and no culprit, is how many of those that ran, from the
	// first, may be to blame: the flight is halved until one is alone.
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

// marked takes the store's verdicts and runs the handlers of what is fresh.
func (m *Machine) marked(e Marked) {
	f := e.Flight
	if e.Class != store.ClassNone {
		m.notBegun(e)
		return
	}
	m.opened(f)
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
		if it.charged {
			m.counts.Retried++
		}
		if it.attempts == 0 && !it.tried {
			m.first()
		}
		it.rolledBack, it.charged, it.tried = false, false, true
	}
	f.running, f.handled = true, true
	m.do(Run{Flight: f, Fresh: f.fresh, Budget: m.config.BatchTime})
}

// notBegun ends a flight whose transaction did not open: nobody's attempt.
func (m *Machine) notBegun(e Marked) {
	f := e.Flight
	w := m.land(f)
	switch {
	case e.CopyBusy:
		m.up()
		if len(f.Entries) == 1 {
			m.holdBusy(f.Entries[0].Item)
			break
		}
		w.limit = quarter(len(f.Entries))
		m.requeueAll(f)
	case e.Class == store.ClassContended:
		m.up()
		m.contention(w, f)
		m.requeueAll(f)
	default:
		m.outages++
		m.standDown(f, e.Err, false)
	}
	m.mayLeaveAgain(f, 0)
}

// sift finds what runs: fresh marks, but nothing of a line behind a message
// that must be waited for. What is fresh and may not run is trimmed.
func (m *Machine) sift(f *Flight) {
	var waited []*line
	f.fresh = make([]int, 0, len(f.Entries))
	for i, en := range f.Entries {
		v := f.verdicts[i]
		if v.Kind != store.Newer {
			m.known(en.Item)
		}
		if v.Kind != store.Busy && !m.own(en, v) {
			en.Item.uncount()
		}
		if en.Item.line.ordered && (mustWait(v) || v.Kind == store.Conflict && m.config.OnConflict == EndHalt) {
			waited = append(waited, en.Item.line)
			continue
		}
		if v.Kind == store.Gap || v.Kind == store.Stale || v.Kind == store.Behind || v.Kind == store.Old {
			en.Item.unknown = false
		}
		if v.Kind == store.Old && m.config.Block && en.Item.line.ordered { // what comes behind it waits where it does
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
			if en.Item.line.ordered { // it keeps its place
				waited = append(waited, en.Item.line)
			}
		case en.As == AsApplied:
			f.fresh = append(f.fresh, i)
		}
	}
}

// mustWait reports whether the store could not say what became of an identity,
// so that its message is held and asks again.
func mustWait(v store.Verdict) bool { return v.Kind == store.Busy || v.Kind == store.Newer }

// ran takes the end of a flight's handlers.
func (m *Machine) ran(e Ran) {
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
			// The time was up: the next batch marks about what this one had time for,
			// since the commit doubles it.
			m.workers[f.Worker].limit = max(1, (e.Done+1)/2)
		}
		m.commit(f)
		return
	}
	failure := e.Failure
	f.failure = &failure
	f.culprit = -1
	switch {
	case e.Class == store.ClassContended || e.Class == store.ClassDown:
		f.why, f.cause, f.outside, f.failure = e.Class, e.Err, e.Outside, nil
		if !e.Whole {
			f.culprit = f.fresh[e.Done]
		}
	case e.Class == store.ClassClaimLost:
		f.why, f.failure = e.Class, nil
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

// stuck cuts the connection under a handler that does not end; its worker and
// its lanes wait until it returns (case 10). For a callback of a commit the shell
// has done that already.
func (m *Machine) stuck(e Stuck) {
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
