package machine

import "container/heap"

// state is the state of an item. An item is in exactly one state.
type state uint8

const (
	gone state = iota
	queued
	inFlight
	held    // waits for a time
	awaited // waits for a time, because a newer release wrote its marker
	riding  // waits for an earlier copy of the same identity
	copying // its dead letter is being written
	skipped // is not for this consumer, and is acked without a batch
	settling
	states // number of states
)

// placement is a state and the data of that state.
type placement struct {
	state   state
	index   int32 // if held: index in the heap
	until   Time  // if held or awaited
	carrier *Item // if riding
}

// move changes an item's state and updates all lists and counters: the list of all items, the counts of items and
// bytes, the queue, the items that wait for a time, the waiting copies of its first copy (carrier), and the blockers of
// its line. No other function changes an item's placement. The copies that wait for the item are not moved; see
// first_copy.go.
func (m *Machine) move(it *Item, to placement) {
	m.takeOut(it)
	m.inState[it.state]--
	m.inState[to.state]++
	if it.state == gone && to.state != skipped {
		m.join(it)
	}
	l := it.line
	it.placement = to
	m.putIn(it)
	if l != nil {
		m.rank(l)
	}
}

// takeOut removes the item from the lists of its current state.
func (m *Machine) takeOut(it *Item) {
	switch it.state {
	case gone:
		m.live.add(it)
		m.bytes += int64(it.Size)
		it.lane.items++
	case held, awaited:
		heap.Remove(&m.held, int(it.index))
	case queued:
		it.line.remove(it)
	case inFlight:
		it.line.flying--
	case riding:
		m.touched += it.carrier.riders.remove(it)
	}
	if it.blocks {
		it.line.blockers.remove(it)
		m.flow(it.lane)
	}
}

// putIn adds the item to the lists of its new state.
func (m *Machine) putIn(it *Item) {
	switch it.state {
	case gone:
		m.known(it)
		m.touched++
		m.live.remove(it)
		m.bytes -= int64(it.Size)
		it.lane.items--
		m.depart(it)
		m.fetch.active = m.now
	case queued:
		it.line.push(it)
	case inFlight:
		it.line.flying++
	case held, awaited:
		heap.Push(&m.held, it)
	case riding:
		if it.carrier.riders == nil {
			it.carrier.riders = &riders{}
		}
		it.carrier.riders.add(it)
	}
	if m.keepsBack(it) {
		it.line.blockers.add(it)
		m.flow(it.lane)
	}
}

// keepsBack reports whether an item blocks the later items of its line (its ordered key or lane). An item that waits
// for a first copy (carrier) blocks its line in three cases: the carrier is in another line, lane or epoch; the item is
// a conflict that will stop the consumer; or the item is no copy of the carrier but has the same previous identity.
func (m *Machine) keepsBack(it *Item) bool {
	switch it.state {
	case held, awaited, copying:
		return it.line.ordered
	case riding:
		return it.line.ordered && (it.line != it.carrier.line || it.lane != it.carrier.lane || it.ridesForFormer() || it.Print != it.carrier.Print && m.config.OnConflict == EndHalt)
	}
	return false
}

// flow pauses the delivery of a lane that is blocked, so that its messages do not fill the memory (case 6).
func (m *Machine) flow(l *lane) {
	if l.line == nil {
		return
	}
	if on := l.line.blockers.count == 0; on == l.paused && !l.left {
		l.paused = !on
		if on {
			m.paused--
		} else {
			m.paused++
		}
		m.do(Flow{Lane: l.name, On: on})
	}
}
