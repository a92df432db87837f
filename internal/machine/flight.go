package machine

import "time"

// worker runs one flight at a time.
type worker struct {
	number int
	lines  []*line
	flight *Flight
	// limit is how many entries the next flight takes: a failure cuts it to a
	// quarter, each commit doubles it.
	limit int
	// before, when not 0, makes the next flight end before this arrival: it
	// runs again what stood before a culprit.
	before uint64
	// until is when it may start again after contention.
	until     Time
	contended int // in a row
}

// flightState is the machine's own part of a Flight.
type flightState struct {
	verdicts []Verdict
	fresh    []int // entries whose handlers run, in order
	done     int   // how many of them did
	running  bool
	handled  bool // Run was said
	stopped  bool // StopRun was said
	stuck    bool // its handler goes on after its timeout
	empty    bool // it runs no handler: it asks whether the store works
	trim     []int
	failure  *Failure
	culprit  int // with failure: the entry to blame, -1 if any of suspects; with why: whose handler met it
	suspects int
	why      Class // nobody's failure: Contended, Down
	outside  bool  // with why: as in Failure
	cause    error // with why, for people
}

func (f *Flight) holds(l *lane) bool {
	for i := range f.Entries {
		if f.Entries[i].Item.lane == l {
			return true
		}
	}
	return false
}

// startFlights begins a batch on every idle worker from what is there; nobody
// waits for a batch to fill.
func (m *Machine) startFlights() {
	if m.end.stopping {
		return
	}
	for n := range m.workers {
		i := m.serial.place(n, len(m.workers))
		w := &m.workers[i]
		if w.flight != nil || w.until > m.now || !m.store.mayBegin(m.now) || m.serial.on && m.oneFlies() {
			continue
		}
		entries, empty := m.form(w)
		if len(entries) == 0 {
			continue
		}
		m.flights++
		w.flight = &Flight{Number: m.flights, Worker: i, Entries: entries}
		w.flight.empty = empty
		if m.store.down {
			m.store.asks = w.flight
		}
		if m.serial.on {
			m.serial.turn = i + 1
		}
		m.do(Begin{Flight: w.flight, Serial: m.serial.on})
	}
}

// form takes the next entries of a worker in arrival order.
func (m *Machine) form(w *worker) (entries []Entry, empty bool) {
	entries, empty = m.collect(w)
	if len(entries) == 0 && w.before != 0 {
		w.before = 0
		entries, empty = m.collect(w)
	}
	w.before = 0
	return entries, empty
}

func (m *Machine) collect(w *worker) (entries []Entry, empty bool) {
	limit := w.limit
	if w.before != 0 {
		limit = m.config.Most
	}
	for len(entries) < limit {
		l, it := w.earliest()
		if it == nil || w.before != 0 && it.arrival >= w.before || it.alone && len(entries) > 0 || m.marksTwice(entries, it) {
			break
		}
		var charged bool
		if empty, charged = m.judge(l, it); charged {
			continue
		}
		l.pop()
		it.place = inFlight
		if entries == nil {
			entries = make([]Entry, 0, min(limit, len(l.queue)-l.head+1))
		}
		entries = append(entries, Entry{Item: it, As: it.as, Unmarked: m.config.Unmarked && it.as == AsApplied})
		if it.alone {
			break
		}
	}
	return entries, empty
}

// marksTwice reports whether the flight has a mark of this identity already.
// Without marks copies do not ride, and two of them can leave the direct path
// at once: the second is marked, and counted, in the next flight.
func (m *Machine) marksTwice(entries []Entry, it *Item) bool {
	if !m.config.Unmarked || it.as == AsApplied {
		return false
	}
	for _, en := range entries {
		if !en.Unmarked && en.Item.key() == it.key() {
			return true
		}
	}
	return false
}

// earliest returns the worker's next item over its lines.
func (w *worker) earliest() (*line, *Item) {
	var from *line
	var best *Item
	for _, l := range w.lines {
		if it := l.first(); it != nil && (best == nil || it.arrival < best.arrival) {
			from, best = l, it
		}
	}
	return from, best
}

// marked takes the store's verdicts and runs the handlers of what is fresh.
func (m *Machine) marked(e Marked) {
	f := e.Flight
	if e.Class != None {
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
		it.rolledBack, it.charged = false, false
	}
	f.running, f.handled = true, true
	m.do(Run{Flight: f, Fresh: f.fresh, Budget: m.config.BatchTime})
}

// notBegun ends a flight whose transaction did not open: nobody's attempt.
func (m *Machine) notBegun(e Marked) {
	f := e.Flight
	w := m.land(f)
	switch e.Class {
	case CopyBusy:
		m.up()
		if len(f.Entries) == 1 {
			m.holdBusy(f.Entries[0].Item)
			return
		}
		w.limit = quarter(len(f.Entries))
		m.requeueAll(f)
	case Contended:
		m.up()
		m.contention(w, f)
		m.requeueAll(f)
	default:
		m.outages++
		m.standDown(f, e.Err, false)
	}
}

// standDown keeps a flight for when the store is back, or hands it back where
// nothing waits. opened says that its transaction had opened.
func (m *Machine) standDown(f *Flight, err error, opened bool) {
	m.goDown(f, err, opened)
	if !m.config.OneAttempt {
		m.requeueAll(f)
		return
	}
	for _, en := range f.Entries {
		m.uncarry(en.Item)
		m.settle(en.Item, Settlement{Kind: HandBack, After: m.store.until - m.now, Err: err})
	}
}

// sift finds what runs: fresh marks, but nothing of a lane behind a message
// that must be waited for. What is fresh and may not run is trimmed.
func (m *Machine) sift(f *Flight) {
	var waited []*lane
	for i, en := range f.Entries {
		v := f.verdicts[i]
		if v != Busy && !m.own(en, v) {
			en.Item.uncount()
		}
		if m.config.Lanes == Partition && (v == Busy || v == Conflict && m.config.OnConflict == ThenHalt) {
			waited = append(waited, en.Item.lane)
			continue
		}
		if v != Fresh {
			continue
		}
		en.Item.unknown = false
		switch {
		case contains(waited, en.Item.lane):
			f.trim = append(f.trim, i)
		case en.As == AsApplied:
			f.fresh = append(f.fresh, i)
		}
	}
}

func contains(lanes []*lane, l *lane) bool {
	for _, x := range lanes {
		if x == l {
			return true
		}
	}
	return false
}

// ran takes the end of a flight's handlers.
func (m *Machine) ran(e Ran) {
	f := e.Flight
	f.running = false
	if f.stuck && !m.anyStuck() {
		m.do(Report{Kind: ReportReady, Reason: "handler"})
	}
	f.done = e.Done
	if !e.Failed {
		m.commit(f)
		return
	}
	failure := e.Failure
	f.failure = &failure
	f.culprit = -1
	switch {
	case e.Class == Contended || e.Class == Down:
		f.why, f.cause, f.outside, f.failure = e.Class, e.Err, e.Outside, nil
		if !e.Whole {
			f.culprit = f.fresh[e.Done]
		}
	case e.Whole:
		f.suspects = len(f.fresh)
	case e.Class == Aborted:
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
// its lanes wait until it returns (case 10).
func (m *Machine) stuck(e Stuck) {
	f := e.Flight
	if !f.running {
		return
	}
	f.stuck = true
	m.do(Kill{Flight: f})
	if e.Item != nil {
		m.do(Report{Kind: ReportStuck, Item: e.Item, N: 1})
		return
	}
	m.do(Report{Kind: ReportStuck, Item: f.Entries[f.fresh[0]].Item, N: len(f.fresh)})
}

// anyStuck reports whether a handler goes on after its timeout.
func (m *Machine) anyStuck() bool {
	for i := range m.workers {
		if m.workers[i].sticks() {
			return true
		}
	}
	return false
}

// sticks reports whether the worker's handler goes on after its timeout.
func (w *worker) sticks() bool { return w.flight != nil && w.flight.stuck && w.flight.running }

func (m *Machine) stopRun(f *Flight) {
	if f.running && !f.stopped {
		m.do(StopRun{Flight: f})
	}
	f.stopped = true
}

// commit ends a flight with what its handlers did: marks without a run are
// taken back, rows are written, all in one transaction.
func (m *Machine) commit(f *Flight) {
	f.trim = append(f.trim, f.fresh[f.done:]...)
	for _, i := range f.trim {
		f.verdicts[i] = untouched
	}
	m.do(Commit{Flight: f, Trim: f.trim, Rows: m.rows(f)})
}

// untouched is the verdict on a mark that was taken back.
const untouched Verdict = 0

// land frees the flight's worker.
func (m *Machine) land(f *Flight) *worker {
	w := &m.workers[f.Worker]
	w.flight = nil
	if m.store.asks == f {
		m.store.asks = nil
	}
	return w
}

func (m *Machine) requeueAll(f *Flight) {
	for i := len(f.Entries) - 1; i >= 0; i-- {
		m.requeue(f.Entries[i].Item)
	}
}

// requeue puts an item back at its number, unless it is to be left.
func (m *Machine) requeue(it *Item) {
	if m.leaving(it) {
		m.leave(it)
		return
	}
	m.shed(it)
	m.enqueue(it)
}

func quarter(n int) int { return max(1, n/4) }

// contention lets a worker wait and try less at once: nobody's attempt.
func (m *Machine) contention(w *worker, f *Flight) {
	w.limit = quarter(len(f.Entries))
	w.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, w.contended)
	w.contended++
}

// jitter returns a random wait of up to first, doubled n times, at most most
// ("full jitter": M. Brooker, Exponential Backoff And Jitter, 2015). It is
// never 0, so that nothing spins.
func (m *Machine) jitter(first, most time.Duration, n int) time.Duration {
	upper := first << min(n, 30)
	if upper > most || upper < first {
		upper = most
	}
	return 1 + time.Duration(m.random.Int64N(int64(max(upper, 1))))
}
