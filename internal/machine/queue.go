package machine

import "slices"

// queue holds items by arrival. Every lane with an order has its own, so that a
// blocked one costs its neighbours nothing; for the others every worker has one.
type queue struct {
	items    []*Item // items[head:] by arrival; what is no longer queued is skipped
	head     int
	blockers blockers // they let only smaller numbers pass
}

// first returns the item that may run next, nil if there is none.
func (q *queue) first() *Item {
	for q.head < len(q.items) && q.items[q.head].state != queued {
		q.items[q.head] = nil
		q.head++
	}
	if q.head == len(q.items) {
		q.items, q.head = emptied(q.items), 0
		return nil
	}
	it := q.items[q.head]
	if q.blockers.keeps(it) {
		return nil
	}
	return it
}

// remove takes an item out that leaves: the first at once, others when they come
// to be first or when the queue is tidied. What may come back is the first.
func (q *queue) remove(it *Item) {
	if q.head < len(q.items) && q.items[q.head] == it {
		q.items[q.head] = nil
		q.head++
	}
}

// push puts an item at its place by arrival: mostly at the end, or, when it
// comes back, before the head.
func (q *queue) push(it *Item) {
	n := len(q.items)
	switch {
	case n == q.head || q.items[n-1].arrival < it.arrival:
		q.tidy()
		q.items = append(q.items, it)
	case q.head > 0 && it.arrival < q.items[q.head].arrival:
		q.head--
		q.items[q.head] = it
	default:
		q.tidy()
		i, _ := slices.BinarySearchFunc(q.items[q.head:], it, byArrival)
		q.items = slices.Insert(q.items, q.head+i, it)
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
func (q *queue) tidy() {
	if len(q.items) < cap(q.items) {
		return
	}
	kept := q.items[:0]
	for _, it := range q.items[q.head:] {
		if it.state == queued {
			kept = append(kept, it)
		}
	}
	clear(q.items[len(kept):])
	if n, room := len(kept), cap(kept); 2*n > room || room > max(small, 4*n) {
		kept = append(make([]*Item, 0, 2*n+1), kept...)
	}
	q.items, q.head = kept, 0
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
