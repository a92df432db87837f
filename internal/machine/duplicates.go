package machine

// riders are the copies that ride on an item, in the order of arrival. One that
// leaves stays in the list until most of it has left: a lane with many riders
// may go at once, and each must cost the same.
// None of it is there for an item on which nothing ever rode.
type riders struct {
	list []*Item
	left int // of those in the list
}

// has reports whether an item of the list is still there.
func (r *riders) has(it *Item) bool { return it.carrier != nil && it.carrier.riders == r }

// all are those that ride, and some that have left.
func (r *riders) all() []*Item {
	if r == nil {
		return nil
	}
	return r.list
}

func (r *riders) add(it *Item) { r.list = append(r.list, it) }

// remove takes a rider out, and returns how many items it has looked at.
func (r *riders) remove(it *Item) (touched int) {
	if len(r.list) == 0 { // it has been taken out with all others
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

// takeAll empties the list and returns who was there.
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
