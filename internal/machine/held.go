package machine

// heldHeap contains the items that wait for a time, ordered by that time and then by arrival. Each item stores its
// index, so that it can be removed at once: an item may wait long, and its lane may be lost while the item waits.
type heldHeap []*Item

func (h heldHeap) Len() int { return len(h) }
func (h heldHeap) Less(i, j int) bool {
	if h[i].until != h[j].until {
		return h[i].until < h[j].until
	}
	return h[i].arrival < h[j].arrival
}
func (h heldHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i), int32(j)
}
func (h *heldHeap) Push(x any) {
	it := x.(*Item)
	it.index = int32(len(*h))
	*h = append(*h, it)
}
func (h *heldHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	if *h = old[:len(old)-1]; len(*h) == 0 {
		*h = shrink(old)
	}
	return it
}
