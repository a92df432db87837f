package machine

import "slices"

// queue contains items in order of arrival. Every ordered lane has its own, so that a blocked lane does not delay
// the others. Each worker has one for the other lanes.
type queue struct {
	items    []*Item // items[head:] by arrival; items that are no longer queued are skipped
	head     int
	blockers blockers // only earlier items may run
}

// first returns the item that may run next; nil if there is none.
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

// remove removes an item that leaves. The first item is removed at once; others when they become the first or when
// the queue is compacted. Only the first item may come back.
func (q *queue) remove(it *Item) {
	if q.head < len(q.items) && q.items[q.head] == it {
		q.items[q.head] = nil
		q.head++
	}
}

// push inserts an item in order of arrival: usually at the end, or before the head if it comes back.
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

// small is the length up to which an empty queue keeps its memory.
const small = 1024

// emptied returns the queue to continue with after all items have left.
func emptied(queue []*Item) []*Item {
	if cap(queue) > small {
		return nil
	}
	return queue[:0]
}

// tidy makes space at the end of a full queue. tidy removes items that have left, before the head and behind it,
// so that a queue that is never empty, or whose worker is stuck, does not grow indefinitely. tidy also frees
// memory after a time with more items. Afterwards half of the space is free, so that a push has a constant cost
// at any length.
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
