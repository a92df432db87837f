package machine

import "slices"

// worker runs one flight at a time.
type worker struct {
	number int
	// own are the worker's own lines. ready are the other lines of the worker that may fly, the earliest first.
	// load is the number of items in these other lines.
	own    [ownLines]*line
	ready  lineHeap
	load   int
	flight *Flight
	// claims: the worker's last flight consisted of claims.
	claims bool
	// limit is the maximum number of entries of the next flight: a failure divides it by four, each commit doubles
	// it.
	limit int
	// before, if not 0, limits the next flight to entries before this arrival, because it runs the entries before
	// a culprit again.
	before uint64
	// until is when the worker may start again after contention.
	until     Time
	contended int // number of contentions in a row
}

// The lines that each worker has. Claims have their own, so that receipts do not wait behind claims that may not
// be tried now.
const (
	ownLoose = iota // items of lanes without an order
	ownClaims
	ownLines // number of lines
)

// anyStuck reports whether a handler, or a callback of a commit, has exceeded its timeout.
func (m *Machine) anyStuck() bool {
	return slices.ContainsFunc(m.workers, func(w worker) bool { return w.sticks() })
}

// handlersStick reports whether a handler has exceeded its timeout.
func (m *Machine) handlersStick() bool {
	return slices.ContainsFunc(m.workers, func(w worker) bool { return w.sticks() && w.flight.running })
}

// sticks reports whether the worker's handler or callback has exceeded its timeout.
func (w *worker) sticks() bool { return w.flight != nil && w.flight.sticks }

// stick records whether the flight's handler or callback has exceeded its timeout.
func (m *Machine) stick(f *Flight, sticks bool) {
	switch {
	case sticks && !f.sticks:
		m.sticking++
	case !sticks && f.sticks:
		m.sticking--
	}
	f.sticks = sticks
}

func (m *Machine) flying() bool {
	for i := range m.workers {
		if m.workers[i].flight != nil {
			return true
		}
	}
	return false
}

// land frees the flight's worker.
func (m *Machine) land(f *Flight) *worker {
	w := &m.workers[f.Worker]
	m.stick(f, false)
	w.flight = nil
	if m.store.asks == f {
		m.store.asks = nil
	}
	return w
}

// looseWorker returns the worker for an item without an order. A claim is unavailable to other processes, so it
// goes to a worker that can begin it.
func (m *Machine) looseWorker(it *Item) *worker {
	n := uint64(len(m.workers))
	first := it.Route % n
	if it.Claim != nil {
		for i := range n {
			if w := &m.workers[(first+i)%n]; !w.sticks() {
				return w
			}
		}
	}
	return &m.workers[first]
}

func quarter(n int) int { return max(1, n/4) }

// contention makes a worker wait, and try fewer entries at once. No message is charged.
func (m *Machine) contention(w *worker, f *Flight) {
	w.limit = quarter(len(f.Entries))
	w.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, w.contended)
	w.contended++
}
