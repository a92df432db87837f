package machine

import "slices"

// worker runs one batch at a time.
type worker struct {
	number int
	// unorderedLines contains the worker's own lines (queues of messages without an order). The field ready contains
	// those other lines of the worker that are ready to run, the earliest first. The field load is the number of items
	// in the other lines.
	unorderedLines [ownLines]*line
	ready          lineHeap
	load           int
	flight         *Flight
	// claims means that the worker's last batch consisted of claimed rows.
	claims bool
	// batchLimit is the maximum number of entries of the next batch. A failure divides the limit by four. Each
	// commit doubles the limit.
	batchLimit int
	// beforeArrival, if not 0, limits the next batch to entries with a smaller arrival number. The field is set when
	// the entries before a failed message run again.
	beforeArrival uint64
	// backoffUntil is the time at which the worker may start again after contention.
	backoffUntil Time
	contended    int // number of consecutive contentions
}

// The lines (queues) that each worker has. Claimed rows have a separate line, so that messages to be received need not
// wait for claimed rows that may not be tried now.
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

// sticks reports whether the worker's handler or callback has exceeded its timeout and still runs.
func (w *worker) sticks() bool { return w.flight != nil && w.flight.sticks }

// stick records whether the batch's handler or callback has exceeded its timeout and still runs.
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

// land ends a batch and frees its worker.
func (m *Machine) land(f *Flight) *worker {
	w := &m.workers[f.Worker]
	m.stick(f, false)
	w.flight = nil
	if m.store.asks == f {
		m.store.asks = nil
	}
	return w
}

// looseWorker returns the worker for an item without an order. A claimed row goes to a worker that can begin at once,
// because other processes cannot process a claimed row.
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

// backOff makes a worker wait, and take fewer entries for its next batch. Contention does not count as an attempt.
func (m *Machine) backOff(w *worker, f *Flight) {
	w.batchLimit = quarter(len(f.Entries))
	w.backoffUntil = m.now + m.jitter(m.config.BackoffFirst, m.config.BackoffMost, w.contended)
	w.contended++
}
