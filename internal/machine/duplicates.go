package machine

// riders contains the waiting copies of an item, in order of arrival. A copy that no longer waits stays in the list
// until more than half of the listed copies have stopped waiting, so that the cost of removing a copy does not depend
// on the number of copies. For an item without waiting copies, riders is nil.
type riders struct {
	list []*Item
	left int // number of copies in the list that no longer wait
}

// has reports whether a copy in the list still waits.
func (r *riders) has(it *Item) bool { return it.carrier != nil && it.carrier.riders == r }

// items returns the list, including copies that no longer wait.
func (r *riders) items() []*Item {
	if r == nil {
		return nil
	}
	return r.list
}

func (r *riders) add(it *Item) { r.list = append(r.list, it) }

// remove removes a waiting copy and returns the number of examined items.
func (r *riders) remove(it *Item) (touched int) {
	if len(r.list) == 0 { // takeAll has removed the copy
		return 0
	}
	if r.left++; 2*r.left <= len(r.list) {
		return 0
	}
	touched = len(r.list)
	var kept []*Item
	for _, other := range r.list {
		if other != it && r.has(other) {
			kept = append(kept, other)
		}
	}
	r.list, r.left = kept, 0
	return touched
}

// takeAll empties the list and returns the waiting copies.
func (r *riders) takeAll() []*Item {
	if r == nil {
		return nil
	}
	all := r.list
	if r.left > 0 {
		all = nil
		for _, it := range r.list {
			if r.has(it) {
				all = append(all, it)
			}
		}
	}
	r.list, r.left = nil, 0
	return all
}
