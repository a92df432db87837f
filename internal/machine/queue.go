package machine

import "slices"

// queue contains items in order of arrival. Every ordered lane has its own queue, so that a blocked lane does not delay
// other lanes. Each worker has one queue for messages without an order.
type queue struct {
	items    []*Item // items[head:] in order of arrival; items that are no longer queued are ignored
	head     int
	blockers blockers // items after a blocker must not run
}

// firstItem returns the item that may run next, or nil if no item may run.
func (q *queue) firstItem() *Item {
	for q.head < len(q.items) && q.items[q.head].state != queued {
		q.items[q.head] = nil
		q.head++
	}
	if q.head == len(q.items) {
		q.items, q.head = shrink(q.items), 0
		return nil
	}
	it := q.items[q.head]
	if q.blockers.keeps(it) {
		return nil
	}
	return it
}

// remove removes an item that leaves the queue. The first item is removed at once. Any other item is removed when it
// becomes the first, or when the queue is compacted. Only the first item may be pushed again.
func (q *queue) remove(it *Item) {
	if q.head < len(q.items) && q.items[q.head] == it {
		q.items[q.head] = nil
		q.head++
	}
}

// push inserts an item in order of arrival: usually at the end, or before the head if the item was in the
// queue before.
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

// maxIdleCapacity is the maximum capacity that an empty queue keeps.
const maxIdleCapacity = 1024

// shrink returns the slice to use after all items have left the queue.
func shrink(queue []*Item) []*Item {
	if cap(queue) > maxIdleCapacity {
		return nil
	}
	return queue[:0]
}

// tidy makes space at the end of a full queue by removing items that are no longer queued. So a queue does not grow
// without limit, even if it is never empty or its worker is stuck. If the queue had many more items before, tidy also
// frees memory. After tidy, half of the space is free, so the average cost of a push does not depend on the length.
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
	if n, room := len(kept), cap(kept); 2*n > room || room > max(maxIdleCapacity, 4*n) {
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
