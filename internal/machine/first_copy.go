package machine

import "github.com/semel-go/semel"

// Later copies of an identity wait for the first copy in memory (case 4). The functions of this file decide how the
// first copy ends together with the waiting copies. In the code, the first copy is called the carrier, and the waiting
// copies are called riders.

// tracked reports whether later copies of the item wait for the item. A claimed row is not a copy: a claimed row never
// waits for a delivery, and for deliveries the store's answer is that the message waits in the inbox.
func (m *Machine) tracked(it *Item) bool {
	return it.Claim == nil && (!m.config.Unmarked || it.Refused != nil)
}

// admitCopy queues an item, or makes the item wait for an earlier copy. An item that waits only because of its previous
// identity is still recorded as the first copy of its own identity. If the item were not recorded, later copies could
// run before the item, or the item and a later copy could wait for each other.
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

// carrierOf returns the item for which the given item must wait, or nil if the given item need not wait. The returned
// item is the first copy of the same identity, or an earlier item with the same previous identity. The earlier item may
// be a copy or have other content.
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

// sharesFormer reports whether another item in memory has the item's previous identity. If no other item has this
// previous identity, the given item reserves the previous identity, so that two markers of the same identity are never
// written at the same time.
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

// leaving reports whether an item that has not ended must be dropped.
func (m *Machine) leaving(it *Item) bool {
	return m.end.stopping || it.lane.left || it.lane.revoking
}

// leave drops an item. The first of the item's waiting copies then replaces the item.
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

// uncarry makes an item give up its identity, so that a waiting copy becomes the first copy.
func (m *Machine) uncarry(it *Item) { m.promote(m.unload(it)) }

// unload makes an item give up its identity and returns its waiting copies. The caller must move the returned copies at
// once.
func (m *Machine) unload(it *Item) []*Item {
	m.touched += len(it.riders.items())
	if m.carriers[it.key()] == it {
		delete(m.carriers, it.key())
	}
	if it.Former != nil && m.formers[*it.Former] == it {
		delete(m.formers, *it.Former)
	}
	return it.riders.takeAll()
}

// promote turns a waiting copy into the first copy (carrier): the earliest waiting copy that may still run. The arrival
// number of the copy does not change. If messages waited because of a previous identity, several messages may become
// first copies.
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

// ride makes a copy wait for the first copy.
func (m *Machine) ride(it, carrier *Item) {
	m.move(it, placement{state: riding, carrier: carrier})
}

// shed drops the waiting copies in lanes that are being revoked. The first copy, for which the dropped copies have
// waited, does not end yet, and a revoked lane must not wait for the first copy.
func (m *Machine) shed(carrier *Item) {
	r := carrier.riders
	var left []*Item // the waiting copies of the dropped copies
	for i := 0; i < len(r.items()); {
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
			i = 0 // takeOut has compacted the list
		}
	}
	m.promote(left)
}

// hold makes an item wait in memory until the given time. Later items of the same ordered key or lane wait too.
func (m *Machine) hold(it *Item, until Time) {
	m.shed(it)
	it.runAlone = true
	m.move(it, placement{state: held, until: until})
}

// await makes an item wait whose marker a newer release wrote. After the given time the store is asked again. Other
// messages are not delayed, because one transaction asks about many waiting items.
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

// requeue queues an item again with its arrival number, unless the item must be dropped.
func (m *Machine) requeue(it *Item) {
	if m.leaving(it) {
		m.leave(it)
		return
	}
	m.shed(it)
	m.enqueue(it)
}

// enqueue adds an item to its queue in order of arrival. A dead letter is first copied to the dead-letter topic. The
// message is marked only after the copy exists. A crash between copy and marker causes a second copy, but a copy is
// never missing. The lane of the message waits until the message is marked.
func (m *Machine) enqueue(it *Item) {
	if it.markAs == AsDeadLettered && !it.copied {
		m.move(it, placement{state: copying})
		why := it.failureOrZero()
		m.settles.now = append(m.settles.now, Settlement{Item: it, Kind: semel.DeadLetter, Reason: why.reason, Err: why.last, Attempts: int(it.attempts)})
		return
	}
	m.move(it, placement{state: queued})
}
