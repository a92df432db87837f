package machine

import "container/heap"

// place is where an item is; it is in exactly one.
type place uint8

const (
	gone place = iota
	queued
	inFlight
	held
	riding
	settling
)

// state is the machine's own part of an Item.
type state struct {
	arrival uint64
	place   place
	lane    *lane
	line    *line

	// as is how the next flight marks it; its reason and errors go into the row.
	as          As
	reason      string
	first, last error
	attempts    int
	busy        int // waits for a copy in flight elsewhere, in a row
	// waitsSince is when it first waited for others, tellAt when that is told next.
	waitsSince, tellAt Time
	alone              bool
	suspicion          suspicion
	// unknown: the outcome of its last commit is unknown, so that a marker
	// found there is taken for its own.
	unknown bool
	// rolledBack: its handler ran well and a neighbour undid it.
	rolledBack bool
	// charged: its next run is another attempt.
	charged bool
	// copied: its dead letter is there.
	copied bool
	// counted, of a rider: its repeat is in the rows of the carrier's commit.
	counted bool
	ending  Ending
	until   Time
	waits   int // with held: its place among those that wait

	carrier    *Item
	riders     []*Item
	dismounted int // of riders, those that left
	// blocks: it keeps later items of its line back; listed: it stands among
	// the line's blockers, whether or not it still does.
	blocks, listed bool

	previous, next *Item // of the live list
}

// key is what copies share.
type key struct{ source, identity string }

func (it *Item) key() key { return key{it.Source, it.Identity} }

// Attempt is the number of the handler's next or present run for this item.
func (it *Item) Attempt() int { return it.attempts + 1 }

// liveList holds every item that has not gone, by arrival.
type liveList struct {
	head, tail *Item
	count      int
}

func (l *liveList) add(it *Item) {
	it.previous, it.next = l.tail, nil
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
	l.count++
}

func (l *liveList) remove(it *Item) {
	if it.previous == nil {
		l.head = it.next
	} else {
		it.previous.next = it.next
	}
	if it.next == nil {
		l.tail = it.previous
	} else {
		it.next.previous = it.previous
	}
	it.previous, it.next = nil, nil
	l.count--
}

// admit takes a new delivery in.
func (m *Machine) admit(it *Item) {
	m.arrivals++
	m.counts.Deliveries++
	l := m.lanes[it.Lane.ID]
	if m.end.stopping || l == nil || l.epoch != it.Lane.Epoch || l.revoking {
		return // unsettled: it comes again, to whoever owns the lane then
	}
	it.state = state{arrival: m.arrivals, lane: l, as: AsApplied}
	if m.config.OneAttempt && it.Before > 0 {
		it.attempts = it.Before
	}
	if it.Refused != "" {
		it.as, it.reason, it.alone = AsParked, it.Refused, true
		it.first, it.last = it.Why, it.Why
		if m.onRefused(it) == ThenDeadLetter {
			it.as = AsDeadLettered
		}
	}
	m.live.add(it)
	m.bytes += int64(it.Size)
	l.items++
	if it.Refused != "" && m.onRefused(it) == ThenSkip {
		m.skip(it)
		return
	}
	m.assign(it)
	if it.Refused != "" && m.onRefused(it) == ThenHalt {
		it.place = queued
		m.halt(it)
		return
	}
	if carrier := m.carriers[it.key()]; carrier != nil && m.tracked(it) {
		m.ride(it, carrier)
		return
	}
	m.carry(it)
	m.enqueue(it)
}

// onRefused is how a refused item ends.
func (m *Machine) onRefused(it *Item) Then {
	if it.Foreign {
		return m.config.OnForeign
	}
	return m.config.OnRefused
}

// tracked reports whether copies of the item ride together.
func (m *Machine) tracked(it *Item) bool { return !m.config.Unmarked || it.Refused != "" }

func (m *Machine) carry(it *Item) {
	it.carrier = nil
	if m.tracked(it) {
		m.carriers[it.key()] = it
	}
}

// leave takes an item out for good. What rides on it is promoted.
func (m *Machine) leave(it *Item) {
	if it.place == gone {
		return
	}
	if it.place == held {
		heap.Remove(&m.held, it.waits)
	}
	m.unblock(it)
	m.dismount(it)
	m.touched++
	it.place = gone
	m.live.remove(it)
	m.bytes -= int64(it.Size)
	it.lane.items--
	m.unassign(it.lane)
	m.fetch.active = m.now
	m.uncarry(it)
}

// uncarry ends an item's being the carrier of its identity.
func (m *Machine) uncarry(it *Item) {
	riders := m.unload(it)
	if m.carriers[it.key()] == it {
		delete(m.carriers, it.key())
	}
	m.promote(riders)
}

// hold keeps an item in memory until a moment, its lane behind it.
func (m *Machine) hold(it *Item, until Time) {
	m.shed(it)
	it.place, it.until, it.alone = held, until, true
	heap.Push(&m.held, it)
	m.block(it)
}

// releaseHeld queues what has waited long enough.
func (m *Machine) releaseHeld() {
	for len(m.held) > 0 && m.held[0].until <= m.now {
		it := heap.Pop(&m.held).(*Item)
		m.unblock(it)
		m.enqueue(it)
	}
}

// heldHeap orders held items by moment, then arrival. Each knows its place, so
// that what leaves is taken out at once: a wait may be long, and lanes come and
// go.
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
	h[i].waits, h[j].waits = i, j
}
func (h *heldHeap) Push(x any) {
	it := x.(*Item)
	it.waits = len(*h)
	*h = append(*h, it)
}
func (h *heldHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = nil
	if *h = old[:len(old)-1]; len(*h) == 0 {
		*h = emptied(old)
	}
	return it
}
