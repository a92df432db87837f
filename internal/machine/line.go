package machine

import "slices"

// line is a queue by arrival. With Partition every lane has its own, so that a
// blocked one costs its neighbours nothing; with NoOrder every worker has one.
type line struct {
	queue    []*Item // queue[head:] by arrival; what is no longer queued is skipped
	head     int
	blockers []*Item // by arrival; they let only smaller numbers pass
}

// first returns the item that may run next, nil if there is none.
func (l *line) first() *Item {
	for l.head < len(l.queue) && l.queue[l.head].place != queued {
		l.queue[l.head] = nil
		l.head++
	}
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
		return nil
	}
	it := l.queue[l.head]
	if len(l.blockers) > 0 && l.blockers[0].arrival < it.arrival {
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
		l.queue = append(l.queue, it)
	case l.head > 0 && it.arrival < l.queue[l.head].arrival:
		l.head--
		l.queue[l.head] = it
	default:
		i, _ := slices.BinarySearchFunc(l.queue[l.head:], it, byArrival)
		l.queue = slices.Insert(l.queue, l.head+i, it)
	}
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
	i, there := slices.BinarySearchFunc(it.line.blockers, it, byArrival)
	if there {
		return
	}
	it.line.blockers = slices.Insert(it.line.blockers, i, it)
	m.flow(it.lane)
}

func (m *Machine) unblock(it *Item) {
	if m.config.Lanes != Partition || it.line == nil {
		return
	}
	i, there := slices.BinarySearchFunc(it.line.blockers, it, byArrival)
	if !there {
		return
	}
	it.line.blockers = slices.Delete(it.line.blockers, i, i+1)
	m.flow(it.lane)
}

// flow pauses a lane that is blocked, so that it fills no memory (case 6).
func (m *Machine) flow(l *lane) {
	if on := len(l.line.blockers) == 0; on == l.paused && !l.left {
		l.paused = !on
		m.do(Flow{Lane: l.name(), On: on})
	}
}
