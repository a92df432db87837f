package machine

import "slices"

// worker runs one flight at a time.
type worker struct {
	number int
	// queues are the worker's own, for what is delivered in lanes without an order and
	// for what is claimed, and those of the lanes that it has.
	queues []*queue
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

// The queues that each worker has. Claims have one of their own, so that what is
// received does not wait behind what may not be tried now.
const (
	queueOfLoose = iota
	queueOfClaims
	ownQueues // how many they are
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
	w.flight = nil
	if m.store.asks == f {
		m.store.asks = nil
	}
	return w
}

// assign gives an item its queue and its queue a worker: by a lane that has an
// order, to the least loaded whose handler does not stick; otherwise by the route,
// never by arrival, so that two messages of one key never run at once.
func (m *Machine) assign(it *Item) {
	if it.lane.loose {
		own := queueOfLoose
		if it.Claim != nil {
			own = queueOfClaims
		}
		it.queue = m.looseWorker(it).queues[own]
		return
	}
	l := it.lane
	it.queue = l.queue
	if l.worker >= 0 {
		return
	}
	least := 0
	for i := range m.workers {
		w, best := &m.workers[i], &m.workers[least]
		if sticks := w.sticks(); sticks != best.sticks() {
			if !sticks {
				least = i
			}
			continue
		}
		if len(w.queues) < len(best.queues) {
			least = i
		}
	}
	l.worker = least
	m.workers[least].queues = append(m.workers[least].queues, l.queue)
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

// unassign takes an empty lane from its worker.
func (m *Machine) unassign(l *lane) {
	if l.loose || l.items > 0 || l.worker < 0 {
		return
	}
	w := &m.workers[l.worker]
	if i := slices.Index(w.queues, l.queue); i >= 0 {
		w.queues = slices.Delete(w.queues, i, i+1)
	}
	l.worker = -1
}

func quarter(n int) int { return max(1, n/4) }

// contention lets a worker wait and try less at once: nobody's attempt.
func (m *Machine) contention(w *worker, f *Flight) {
	w.limit = quarter(len(f.Entries))
	w.until = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, w.contended)
	w.contended++
}
