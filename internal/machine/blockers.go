package machine

import "container/heap"

// blockers contains the items of a line (messages of a key or lane) that block later items of the line, in order of
// arrival. Because many items may stop blocking at the same time, an item that no longer blocks is not removed
// immediately, but when it is the first, or when more than half of the items no longer block.
type blockers struct {
	heap  arrivalHeap
	count int // number of items that still block
}

func (b *blockers) add(it *Item) {
	if it.blocks {
		return
	}
	it.blocks = true
	b.count++
	if !it.listed {
		it.listed = true
		heap.Push(&b.heap, it)
	}
}

func (b *blockers) remove(it *Item) {
	if !it.blocks {
		return
	}
	it.blocks = false
	b.count--
	if len(b.heap) > 2*b.count+16 {
		b.tidy()
	}
}

// tidy removes items that no longer block.
func (b *blockers) tidy() {
	kept := make(arrivalHeap, 0, b.count)
	for _, it := range b.heap {
		if it.listed = it.blocks; it.blocks {
			kept = append(kept, it)
		}
	}
	heap.Init(&kept)
	b.heap = kept
}

// firstItem returns the first item that blocks, or nil if no item blocks.
func (b *blockers) firstItem() *Item {
	for len(b.heap) > 0 && !b.heap[0].blocks {
		heap.Pop(&b.heap).(*Item).listed = false
	}
	if len(b.heap) == 0 {
		return nil
	}
	return b.heap[0]
}

// keeps reports whether an earlier item blocks the given item.
func (b *blockers) keeps(it *Item) bool {
	first := b.firstItem()
	return first != nil && first.arrival < it.arrival
}

// arrivalHeap orders items by arrival.
type arrivalHeap []*Item

func (h arrivalHeap) Len() int           { return len(h) }
func (h arrivalHeap) Less(i, j int) bool { return h[i].arrival < h[j].arrival }
func (h arrivalHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *arrivalHeap) Push(x any)        { *h = append(*h, x.(*Item)) }
func (h *arrivalHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return it
}
