package machine

import "slices"

// worker runs one flight at a time.
type worker struct {
	number int
	// own are the worker's own lines; ready are those of the others that it has that
	// may fly, the earliest first. load counts the items of all of these others.
	own    [ownLines]*line
	ready  lineHeap
	load   int
	flight *Flight
	// claims: its last flight was of claims.
	claims bool
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

// The lines that each worker has. Claims have one of their own, so that what is
// received does not wait behind what may not be tried now.
const (
	ownLoose = iota // of lanes without an order
	ownClaims
	ownLines // how many they are
)

// anyStuck reports whether a handler goes on after its timeout, or a callback of
// a commit.
func (m *Machine) anyStuck() bool {
	return slices.ContainsFunc(m.workers, func(w worker) bool { return w.sticks() })
}

// handlersStick reports whether a handler does.
func (m *Machine) handlersStick() bool {
	return slices.ContainsFunc(m.workers, func(w worker) bool { return w.sticks() && w.flight.running })
}

// sticks reports whether what the worker runs goes on after its timeout.
func (w *worker) sticks() bool { return w.flight != nil && w.flight.sticks }

// stick takes note of whether what the flight runs goes on after its timeout.
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

// looseWorker is who has an item without an order. A claim is kept from other
// processes, so it goes to a worker that can begin it.
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

// contention lets a worker wait and try less at once: nobody's attempt.
func (m *Machine) contention(w *worker, f *Flight) {
	w.limit = quarter(len(f.Entries))
	w.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, w.contended)
	w.contended++
}
