package machine

// What rides on a carrier stands in its list in the order of arrival. A rider
// that leaves stays there until most of the list has left: a lane with many
// riders may go at once, and each must cost the same.

// ride lets a copy wait for the first one (case 4). A rider whose carrier is in
// another lane or epoch keeps its place: its lane waits. So it does for a rider
// that will halt the consumer.
func (m *Machine) ride(it, carrier *Item) {
	it.place, it.carrier = riding, carrier
	carrier.riders = append(carrier.riders, it)
	if it.lane != carrier.lane || it.Print != carrier.Print && m.config.OnConflict == ThenHalt {
		m.block(it)
	}
}

// dismount takes a rider that leaves from its carrier.
func (m *Machine) dismount(it *Item) {
	carrier := it.carrier
	if carrier == nil {
		return
	}
	it.carrier = nil
	if carrier.dismounted++; 2*carrier.dismounted <= len(carrier.riders) {
		return
	}
	var kept []*Item
	for _, r := range carrier.riders {
		m.touched++
		if r.carrier == carrier {
			kept = append(kept, r)
		}
	}
	carrier.riders, carrier.dismounted = kept, 0
}

// unload returns what rides on an item and takes it away from it.
func (m *Machine) unload(carrier *Item) []*Item {
	riders := carrier.riders
	if carrier.dismounted > 0 {
		riders = nil
		for _, r := range carrier.riders {
			if r.carrier == carrier {
				riders = append(riders, r)
			}
		}
	}
	m.touched += len(carrier.riders)
	carrier.riders, carrier.dismounted = nil, 0
	return riders
}

// handBackAll hands an item back with all that rides on it: each of them would
// only carry the others to the same end.
func (m *Machine) handBackAll(it *Item, s Settlement) {
	riders := m.unload(it)
	m.uncarry(it)
	m.settle(it, s)
	for _, r := range riders {
		r.carrier, r.counted = nil, false
		m.unblock(r)
		if m.leaving(r) {
			m.leave(r)
			continue
		}
		m.settle(r, s)
	}
}

// promote makes the first of the riders that may still run the carrier, at its
// own number.
func (m *Machine) promote(riders []*Item) {
	var first *Item
	for _, it := range riders {
		m.touched++
		it.carrier, it.counted = nil, false
		m.unblock(it)
		switch {
		case m.leaving(it):
			m.leave(it)
		case first == nil:
			first = it
			m.carry(it)
			m.enqueue(it)
		default:
			m.ride(it, first)
		}
	}
}

// shed drops the riders of lanes that are being left: their carrier does not
// end yet, and nobody may wait for it.
func (m *Machine) shed(carrier *Item) {
	for i := 0; i < len(carrier.riders); {
		m.touched++
		r := carrier.riders[i]
		if r.carrier != carrier || !r.lane.revoking && !r.lane.left {
			i++
			continue
		}
		before := len(carrier.riders)
		m.leave(r)
		if len(carrier.riders) < before {
			i = 0 // the list was tidied
		}
	}
}
