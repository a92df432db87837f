package machine

import "container/heap"

// line is a queue of messages that are processed in order. If one message waits, later messages of the line wait too.
// If lanes are ordered, each lane is a line. If keys are ordered, each key is a line. Messages without an order are in
// lines that belong to the workers, and do not block one another.
//
// Claimed rows whose handlers call other systems have their own lines, one for each route (hash of the key). A call may
// take long, and a message must not wait for a call while a worker is idle.
//
// A line that has items belongs to a worker. The line moves to another worker if that worker is idle and no
// item of the line is in a batch.
type line struct {
	queue
	ordered bool
	route   uint64           // hash of the key
	among   map[uint64]*line // the map that contains the line by route; nil for lines of lanes and workers
	count   int              // number of items in memory
	flying  int              // number of items in a batch
	worker  int              // -1 if no worker has the line
	// place is the index of the line in the worker's heap of lines that are ready to run, which is ordered by the
	// arrival of the first items. If the line is not ready, place is -1.
	place int
	next  uint64
}

func newLine(ordered bool) *line { return &line{ordered: ordered, worker: -1, place: -1} }

// lineHeap contains the lines that are ready to run, ordered by the arrival of their first items.
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

// join adds an item to its line (a queue of messages in order), and assigns the line to a worker.
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

// lineOf returns the line (queue) of an item: the line of its key, the line of its lane, or a line of a worker. The
// worker depends on the hash of the key and not on the arrival, so that two messages of one key never run at the same
// time. Claimed rows that run alone and deliveries are in different lines, because deliveries must not wait for the
// calls of claimed rows.
func (m *Machine) lineOf(it *Item) *line {
	switch {
	case it.Claim != nil && m.config.ClaimsAlone:
		return m.keyLine(m.claims.lines, it.Route)
	case it.Claim != nil:
		return m.looseWorker(it).unorderedLines[ownClaims]
	case m.config.Lanes == NoOrder && m.config.Alone: // the handler may take long
		return m.keyLine(m.lines, it.Route)
	case m.config.Lanes == NoOrder:
		return m.looseWorker(it).unorderedLines[ownLoose]
	case m.config.Lanes == Partition:
		return it.lane.line
	}
	return m.keyLine(m.lines, it.Route)
}

// keyLine returns the line (queue) of a route in the map among. If the map has no such line, keyLine creates the line.
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

// Empty lines (queues) are reused for other keys. At most mostSpare empty lines are kept, and only lines that use
// little memory.
const (
	mostSpare  = 1024
	smallSpare = 32
)

// depart removes an item that has ended or was dropped from its line. An empty line no longer belongs to a worker.
func (m *Machine) depart(it *Item) {
	l := it.line
	if l == nil { // the item was skipped
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
		clear(l.items) // drop references to removed items
		l.queue = queue{items: l.items[:0]}
		m.spare = append(m.spare, l)
	}
}

// rank updates the position of a line in its worker's heap of lines that are ready to run. If an item of the line is in
// a batch, the line is ready only while that batch is being formed.
func (m *Machine) rank(l *line) {
	if !l.ordered || l.worker < 0 {
		return
	}
	ready := &m.workers[l.worker].ready
	it := l.firstItem()
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

// leastLoaded returns the worker for a new line (queue): of the workers whose handler is not stuck, the worker with the
// fewest items.
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

// takeOver moves lines (queues) to an idle worker: half of the lines that wait for the batch of another worker, so that
// keys and lanes do not wait for one another.
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
