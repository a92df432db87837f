package machine

import "slices"

// line is a queue by arrival. With Partition every lane has its own, so that a
// blocked one costs its neighbours nothing; with NoOrder every worker has one.
type line struct {
	queue    []*Item // queue[head:] by arrival; what is no longer queued is skipped
	head     int
	blockers blockers // they let only smaller numbers pass
}

// first returns the item that may run next, nil if there is none.
func (l *line) first() *Item {
	for l.head < len(l.queue) && l.queue[l.head].place != queued {
		l.queue[l.head] = nil
		l.head++
	}
	if l.head == len(l.queue) {
		l.queue, l.head = emptied(l.queue), 0
		return nil
	}
	it := l.queue[l.head]
	if l.blockers.keeps(it) {
		return nil
	}
	return it
}

func (l *line) pop() {
	l.queue[l.head] = nil
	l.head++
}

// push puts an item at its place by arrival: mostly at the end, or, when it
// comes back, before the head.
func (l *line) push(it *Item) {
	n := len(l.queue)
	switch {
	case n == l.head || l.queue[n-1].arrival < it.arrival:
		l.tidy()
		l.queue = append(l.queue, it)
	case l.head > 0 && it.arrival < l.queue[l.head].arrival:
		l.head--
		l.queue[l.head] = it
	default:
		l.tidy()
		i, _ := slices.BinarySearchFunc(l.queue[l.head:], it, byArrival)
		l.queue = slices.Insert(l.queue, l.head+i, it)
	}
}

// small is the length up to which a queue keeps what it has allocated.
const small = 1024

// emptied is the queue to go on with when nothing is left of one.
func emptied(queue []*Item) []*Item {
	if cap(queue) > small {
		return nil
	}
	return queue[:0]
}

// tidy makes room at the end of a full queue: of what has left it, before its
// head or behind it, so that one that is never empty, or whose worker is stuck,
// does not grow with what has passed it. It gives back what a time with more in
// it has left. Half of the room is free then, so that a push costs the same at
// any length.
func (l *line) tidy() {
	if len(l.queue) < cap(l.queue) {
		return
	}
	queue := l.queue[:0]
	for _, it := range l.queue[l.head:] {
		if it.place == queued {
			queue = append(queue, it)
		}
	}
	clear(l.queue[len(queue):])
	if n, room := len(queue), cap(queue); 2*n > room || room > max(small, 4*n) {
		queue = append(make([]*Item, 0, 2*n+1), queue...)
	}
	l.queue, l.head = queue, 0
}

func byArrival(a, b *Item) int {
	switch {
	case a.arrival < b.arrival:
		return -1
	case a.arrival > b.arrival:
		return 1
	}
	return 0
}

// enqueue puts an item at its place in its line. One to be dead-lettered is
// copied first.
func (m *Machine) enqueue(it *Item) {
	if it.as == AsDeadLettered && !it.copied {
		m.copy(it)
		return
	}
	it.place = queued
	it.line.push(it)
}

// block keeps later numbers of the item's lane back, where lanes have an order.
func (m *Machine) block(it *Item) {
	if m.config.Lanes != Partition {
		return
	}
	it.line.blockers.add(it)
	m.flow(it.lane)
}

func (m *Machine) unblock(it *Item) {
	if m.config.Lanes != Partition || !it.blocks {
		return
	}
	it.line.blockers.remove(it)
	m.flow(it.lane)
}

// flow pauses a lane that is blocked, so that it fills no memory (case 6).
func (m *Machine) flow(l *lane) {
	if on := l.line.blockers.count == 0; on == l.paused && !l.left {
		l.paused = !on
		m.do(Flow{Lane: l.name(), On: on})
	}
}
