package machine

import "container/heap"

// line is what keeps an order: its messages run one after the other, and those
// behind one that waits wait with it. A lane is one where lanes have an order, and a
// key where keys have. What has no order stands in lines of the workers' own, which
// keep nothing back.
//
// So does what is claimed to call out, each by its route: a call may take long, and nothing
// that waits behind one is to wait while a worker has nothing to do.
//
// A line belongs to a worker while anything of it is there, and to another as soon
// as that has nothing else to do and nothing of the line is in flight.
type line struct {
	queue
	ordered bool
	route   uint64           // of a key
	among   map[uint64]*line // where it stands by that; nil: it is a lane's, or a worker's own
	count   int              // of those that have not gone
	flying  int              // those in flight
	worker  int              // -1: none
	// place is where it stands among the lines of its worker that may fly, by the
	// arrival of their first; -1: it is none of them.
	place int
	next  uint64
}

func newLine(ordered bool) *line { return &line{ordered: ordered, worker: -1, place: -1} }

// lineHeap orders lines that may fly by the arrival of their first items.
type lineHeap []*line

func (h lineHeap) Len() int           { return len(h) }
func (h lineHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h lineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *lineHeap) Push(x any) {
	l := x.(*line)
	l.place = len(*h)
	*h = append(*h, l)
}
func (h *lineHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h, l.place = old[:len(old)-1], -1
	return l
}

// join puts an item that comes in into its line, and that to a worker.
func (m *Machine) join(it *Item) {
	l := m.lineOf(it)
	it.line = l
	if l.count++; !l.ordered {
		return
	}
	if l.worker < 0 {
		l.worker = m.leastLoaded()
	}
	m.workers[l.worker].load++
}

// lineOf is the line of an item that comes in: of its key, of its lane, or one of
// a worker's own by its route, never by arrival, so that two messages of one key
// never run at once. Claims that fly alone have lines apart from those of deliveries,
// which would wait for their calls.
func (m *Machine) lineOf(it *Item) *line {
	switch {
	case it.Claim != nil && m.config.ClaimsAlone:
		return m.keyLine(m.claims.lines, it.Route)
	case it.Claim != nil:
		return m.looseWorker(it).own[ownClaims]
	case m.config.Lanes == NoOrder && m.config.Alone: // its handler may take long
		return m.keyLine(m.lines, it.Route)
	case m.config.Lanes == NoOrder:
		return m.looseWorker(it).own[ownLoose]
	case m.config.Lanes == Partition:
		return it.lane.line
	}
	return m.keyLine(m.lines, it.Route)
}

// keyLine is the line of a route among these.
func (m *Machine) keyLine(among map[uint64]*line, route uint64) *line {
	l := among[route]
	if l == nil {
		if n := len(m.spare); n > 0 {
			l, m.spare = m.spare[n-1], m.spare[:n-1]
		} else {
			l = newLine(true)
		}
		l.route, l.among = route, among
		among[route] = l
	}
	return l
}

// Lines that are empty are kept for other keys: so many, if they are small.
const (
	mostSpare  = 1024
	smallSpare = 32
)

// depart takes an item out of its line that has gone. An empty line leaves its
// worker.
func (m *Machine) depart(it *Item) {
	l := it.line
	if l == nil { // it was skipped
		return
	}
	if l.count--; !l.ordered {
		return
	}
	m.workers[l.worker].load--
	if l.count > 0 {
		return
	}
	if l.place >= 0 {
		heap.Remove(&m.workers[l.worker].ready, l.place)
	}
	l.worker = -1
	if l.among == nil {
		return
	}
	delete(l.among, l.route)
	if len(m.spare) < mostSpare && cap(l.items) <= smallSpare {
		clear(l.items) // of what has left it
		l.queue = queue{items: l.items[:0]}
		m.spare = append(m.spare, l)
	}
}

// rank puts a line where it belongs among those of its worker that may fly. One of
// which something is in flight belongs there for the flight that is being formed
// only.
func (m *Machine) rank(l *line) {
	if !l.ordered || l.worker < 0 {
		return
	}
	ready := &m.workers[l.worker].ready
	it := l.first()
	switch {
	case it == nil || l.flying > 0 && m.forming != l.worker:
		if l.place >= 0 {
			heap.Remove(ready, l.place)
		}
	case l.place < 0:
		l.next = it.arrival
		heap.Push(ready, l)
	case l.next != it.arrival:
		l.next = it.arrival
		heap.Fix(ready, l.place)
	}
}

// leastLoaded is the worker that a line is given to: whose handler does not stick,
// and that has the fewest items.
func (m *Machine) leastLoaded() int {
	least := 0
	for i := range m.workers {
		w, best := &m.workers[i], &m.workers[least]
		if sticks := w.sticks(); sticks != best.sticks() {
			if !sticks {
				least = i
			}
			continue
		}
		if w.load < best.load {
			least = i
		}
	}
	return least
}

// takeOver gives a worker that has nothing to do half of the lines that wait behind
// the flight of another: so a key, or a lane, waits for no other.
func (m *Machine) takeOver(w *worker) {
	var from *worker
	for i := range m.workers {
		if v := &m.workers[i]; v.flight != nil && len(v.ready) > 0 && (from == nil || len(v.ready) > len(from.ready)) {
			from = v
		}
	}
	if from == nil {
		return
	}
	for n := (len(from.ready) + 1) / 2; n > 0; n-- {
		l := heap.Pop(&from.ready).(*line)
		m.touched++
		from.load -= l.count
		w.load += l.count
		l.worker = w.number
		heap.Push(&w.ready, l)
	}
}
