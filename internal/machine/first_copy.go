package machine

import "github.com/semel-go/semel"

// The first living copy of an identity carries the later ones, which wait for it
// (case 4). What it does is decided here together with what becomes of them.

// tracked reports whether copies of the item ride together. A claim is no copy: it
// never waits for a delivery, and those find that it waits in the inbox.
func (m *Machine) tracked(it *Item) bool {
	return it.Claim == nil && (!m.config.Unmarked || it.Refused != nil)
}

// admitCopy queues an item, or lets it ride on the copy that came before it. One that
// rides for its former identity carries its own copies all the same: were they to pass it,
// it would wait for them one day, and they, in its line, for it.
func (m *Machine) admitCopy(it *Item) {
	switch carrier := m.carrierOf(it); {
	case carrier == nil:
		m.carry(it)
		m.enqueue(it)
	case carrier.key() == it.key():
		m.ride(it, carrier)
	default:
		m.carriers[it.key()] = it
		m.ride(it, carrier)
	}
}

// carrierOf is who an item has to wait for: the first copy of its identity, or an earlier
// item with its former identity, which is of another content or a copy; nil if nobody.
func (m *Machine) carrierOf(it *Item) *Item {
	if !m.tracked(it) {
		return nil
	}
	if carrier := m.carriers[it.key()]; carrier != nil && carrier != it {
		return carrier
	}
	if it.Former != nil {
		if first := m.formers[*it.Former]; first != nil && first.arrival < it.arrival {
			return first
		}
	}
	return nil
}

func (m *Machine) carry(it *Item) {
	if m.tracked(it) {
		m.carriers[it.key()] = it
		if it.Former != nil && m.formers[*it.Former] == nil {
			m.formers[*it.Former] = it
		}
	}
}

// sharesFormer reports whether another item with the item's former identity is in flight.
// If none is, the item has that identity to itself from now on: no two marks of it are
// ever under way at once, whatever order they came in.
func (m *Machine) sharesFormer(it *Item) bool {
	if it.Former == nil || !m.tracked(it) {
		return false
	}
	if other := m.formers[*it.Former]; other != nil && other != it && other.state == inFlight {
		return true
	}
	m.formers[*it.Former] = it
	return false
}

// leaving reports whether an item that has not ended is to be left.
func (m *Machine) leaving(it *Item) bool {
	return m.end.stopping || it.lane.left || it.lane.revoking
}

// leave takes an item out for good. What rides on it is promoted.
func (m *Machine) leave(it *Item) {
	if it.state == gone {
		return
	}
	m.move(it, placement{})
	m.uncarry(it)
	if it.Claim != nil {
		m.free(it)
	}
}

// uncarry ends an item's being the carrier of its identity.
func (m *Machine) uncarry(it *Item) { m.promote(m.unload(it)) }

// unload ends an item's being the carrier of its identity and returns what rode
// on it, which has to be moved at once.
func (m *Machine) unload(it *Item) []*Item {
	m.touched += len(it.riders.all())
	if m.carriers[it.key()] == it {
		delete(m.carriers, it.key())
	}
	if it.Former != nil && m.formers[*it.Former] == it {
		delete(m.formers, *it.Former)
	}
	return it.riders.takeAll()
}

// promote makes the first of the riders that may still run the carrier, at its
// own number. Where they rode for a former identity there may be several.
func (m *Machine) promote(riders []*Item) {
	for i := 0; i < len(riders); i++ {
		m.touched++
		it := riders[i]
		it.counted = false
		if m.leaving(it) {
			m.move(it, placement{})
			riders = append(riders, m.unload(it)...)
			continue
		}
		m.admitCopy(it)
	}
}

// ride lets a copy wait for the first one.
func (m *Machine) ride(it, carrier *Item) {
	m.move(it, placement{state: riding, carrier: carrier})
}

// shed drops the riders of lanes that are being left: their carrier does not
// end yet, and nobody may wait for it.
func (m *Machine) shed(carrier *Item) {
	r := carrier.riders
	var left []*Item // by those that go
	for i := 0; i < len(r.all()); {
		m.touched++
		it := r.list[i]
		if !r.has(it) || !it.lane.revoking && !it.lane.left {
			i++
			continue
		}
		before := len(r.list)
		m.move(it, placement{})
		left = append(left, m.unload(it)...)
		if len(r.list) < before {
			i = 0 // the list was tidied
		}
	}
	m.promote(left)
}

// hold keeps an item in memory until a moment, its lane behind it.
func (m *Machine) hold(it *Item, until Time) {
	m.shed(it)
	it.alone = true
	m.move(it, placement{state: held, until: until})
}

// await is hold for an item that asks again whether this release knows what
// became of it. Unlike a copy in flight it holds no neighbour up: many ask in one
// transaction.
func (m *Machine) await(it *Item, until Time) {
	m.shed(it)
	m.move(it, placement{state: awaited, until: until})
}

// releaseHeld queues what has waited long enough.
func (m *Machine) releaseHeld() {
	for len(m.held) > 0 && m.held[0].until <= m.now {
		m.enqueue(m.held[0])
	}
}

func (m *Machine) requeueAll(f *Flight) {
	for i := len(f.Entries) - 1; i >= 0; i-- {
		m.requeue(f.Entries[i].Item)
	}
}

// requeue puts an item back at its number, unless it is to be left.
func (m *Machine) requeue(it *Item) {
	if m.leaving(it) {
		m.leave(it)
		return
	}
	m.shed(it)
	m.enqueue(it)
}

// enqueue puts an item at its place in its queue. One to be dead-lettered is
// copied first: only when the copy is there does a mark say so, since a crash in
// between makes a second copy, and none is ever missing. Its lane waits, because
// until the mark it has not left it.
func (m *Machine) enqueue(it *Item) {
	if it.as == AsDeadLettered && !it.copied {
		m.move(it, placement{state: copying})
		why := it.failed()
		m.settles.now = append(m.settles.now, Settlement{Item: it, Kind: semel.DeadLetter, Reason: why.reason, Err: why.last, Attempts: int(it.attempts)})
		return
	}
	m.move(it, placement{state: queued})
}
