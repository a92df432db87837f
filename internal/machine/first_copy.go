package machine

import "github.com/semel-go/semel"

// The first copy of an identity in memory carries the later copies, which ride on it (case 4). This file decides
// what the first copy does together with what happens to the others.

// tracked reports whether copies of the item ride together. A claim is not a copy: it never waits for a delivery,
// and deliveries find that the message waits in the inbox.
func (m *Machine) tracked(it *Item) bool {
	return it.Claim == nil && (!m.config.Unmarked || it.Refused != nil)
}

// admitCopy queues an item, or makes it ride on an earlier copy. An item that rides because of its previous
// identity still carries its own copies: if they passed it, it could wait for them, while they wait for it in
// their line.
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

// carrierOf returns the item that an item must wait for: the first copy of its identity, or an earlier item with
// its previous identity, which may be a copy or have other content; nil if there is none.
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

// sharesFormer reports whether another item with the item's previous identity is in memory. If not, the item
// reserves that identity, so that no two marks of it are ever in progress, whatever the order of arrival.
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

// leaving reports whether an item that has not ended should be dropped.
func (m *Machine) leaving(it *Item) bool {
	return m.end.stopping || it.lane.left || it.lane.revoking
}

// leave removes an item. Its riders are promoted.
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

// uncarry makes an item stop carrying its identity.
func (m *Machine) uncarry(it *Item) { m.promote(m.unload(it)) }

// unload makes an item stop carrying its identity and returns its riders, which the caller must move at once.
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

// promote makes the first rider that may still run the carrier, with its own arrival number. If riders rode
// because of a previous identity, there may be several carriers.
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

// ride makes a copy wait for the first one.
func (m *Machine) ride(it, carrier *Item) {
	m.move(it, placement{state: riding, carrier: carrier})
}

// shed drops the riders in lanes that are being revoked: their carrier does not end yet, and the lane must not
// wait for it.
func (m *Machine) shed(carrier *Item) {
	r := carrier.riders
	var left []*Item // by the riders that leave
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
			i = 0 // the list was compacted
		}
	}
	m.promote(left)
}

// hold keeps an item, and its lane behind it, in memory until a time.
func (m *Machine) hold(it *Item, until Time) {
	m.shed(it)
	it.alone = true
	m.move(it, placement{state: held, until: until})
}

// await is hold for an item that will ask again whether this release knows its outcome. Unlike a copy in flight it
// does not delay other messages, because one transaction asks for many items.
func (m *Machine) await(it *Item, until Time) {
	m.shed(it)
	m.move(it, placement{state: awaited, until: until})
}

// releaseHeld queues the items whose wait has ended.
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

// requeue queues an item again with its arrival number, unless it should be dropped.
func (m *Machine) requeue(it *Item) {
	if m.leaving(it) {
		m.leave(it)
		return
	}
	m.shed(it)
	m.enqueue(it)
}

// enqueue adds an item to its queue in order of arrival. A dead letter is copied first, and marked only after the
// copy exists: a crash in between causes a second copy, but no copy is ever missing. Its lane waits until the
// mark.
func (m *Machine) enqueue(it *Item) {
	if it.as == AsDeadLettered && !it.copied {
		m.move(it, placement{state: copying})
		why := it.failed()
		m.settles.now = append(m.settles.now, Settlement{Item: it, Kind: semel.DeadLetter, Reason: why.reason, Err: why.last, Attempts: int(it.attempts)})
		return
	}
	m.move(it, placement{state: queued})
}
