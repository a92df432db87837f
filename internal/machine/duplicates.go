package machine

// riders are the copies that ride on an item, in order of arrival. A rider that leaves stays in the list until
// most have left, so that removing many riders of a lane has a constant cost for each. An item without riders has
// none of this.
type riders struct {
	list []*Item
	left int // number of riders in the list that have left
}

// has reports whether an item of the list still rides.
func (r *riders) has(it *Item) bool { return it.carrier != nil && it.carrier.riders == r }

// all returns the list, including riders that have left.
func (r *riders) all() []*Item {
	if r == nil {
		return nil
	}
	return r.list
}

func (r *riders) add(it *Item) { r.list = append(r.list, it) }

// remove removes a rider and returns the number of items that it examined.
func (r *riders) remove(it *Item) (touched int) {
	if len(r.list) == 0 { // takeAll has removed it
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

// takeAll empties the list and returns the riders.
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
