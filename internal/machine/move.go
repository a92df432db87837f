package machine

import "container/heap"

// state is what an item does; it is in exactly one.
type state uint8

const (
	gone state = iota
	queued
	inFlight
	held    // waits for a moment
	awaited // waits for a moment, because a newer release wrote its marker
	riding  // waits for an earlier copy of the same identity
	copying // its dead letter is being made
	skipped // is not the consumer's, and will be settled without a flight
	settling
	states // how many there are
)

// placement is a state and what belongs to it.
type placement struct {
	state   state
	index   int32 // of held: where it stands among those that wait
	until   Time  // of held and awaited
	carrier *Item // of riding
}

// move takes an item from where it is to another state, and keeps right what
// holds items: the list of the living and the counts of their lane and bytes,
// the queue, what waits, the riders of its carrier, and what keeps its lane back.
// Nothing else writes an item's placement. What rides on the item stays with it:
// see first_copy.go.
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

// takeOut ends what belongs to an item's state.
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

// putIn begins what belongs to an item's state.
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

// keepsBack reports whether later numbers of an item's line wait for it, if that has
// an order. A rider whose carrier is in another line or lane, or in another epoch,
// keeps its place; so does one that will halt the consumer, and one that is no copy of
// its carrier, but has its former identity.
func (m *Machine) keepsBack(it *Item) bool {
	switch it.state {
	case held, awaited, copying:
		return it.line.ordered
	case riding:
		return it.line.ordered && (it.line != it.carrier.line || it.lane != it.carrier.lane || it.ridesForFormer() || it.Print != it.carrier.Print && m.config.OnConflict == EndHalt)
	}
	return false
}

// flow pauses a lane that is blocked, so that it fills no memory (case 6).
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
