package machine

// lane is a lane that was given to this consumer.
type lane struct {
	id    string
	epoch uint64
	// items counts those that have not gone.
	items    int
	line     *line // of its own, with Partition
	worker   int   // -1: none, with Partition
	paused   bool
	revoking bool
	left     bool // lost: nothing of it can be settled
}

func (l *lane) name() Lane { return Lane{ID: l.id, Epoch: l.epoch} }

// given takes a lane. An older epoch of it is lost without a word.
func (m *Machine) given(n Lane) {
	if old := m.lanes[n.ID]; old != nil {
		m.lost(old.name())
	}
	l := &lane{id: n.ID, epoch: n.Epoch, worker: -1}
	if m.config.Lanes == Partition {
		l.line = &line{}
	}
	m.lanes[n.ID] = l
	m.fetch.active, m.fetch.laned = m.now, true
}

// revoking drains a lane: what has not begun is dropped, what has is finished.
func (m *Machine) revoking(n Lane) {
	l := m.lanes[n.ID]
	if l == nil || l.epoch != n.Epoch || l.revoking {
		return
	}
	l.revoking = true
	m.revokes = append(m.revokes, l)
	m.dropIdle(func(it *Item) bool { return it.lane == l })
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && f.holds(l) {
			m.stopRun(f)
		}
	}
}

// lost forgets a lane at once. Handlers that run go on; their commit does no
// harm, since a redelivery finds the marker.
func (m *Machine) lost(n Lane) {
	l := m.lanes[n.ID]
	if l == nil || l.epoch != n.Epoch {
		return
	}
	delete(m.lanes, n.ID)
	l.left = true
	m.dropIdle(func(it *Item) bool { return it.lane == l })
}

// dropIdle drops the chosen items that no flight has begun. Riders stay whose
// carrier is in flight: they are settled with it.
func (m *Machine) dropIdle(chosen func(*Item) bool) {
	var all []*Item
	for it := m.live.head; it != nil; it = it.next {
		m.touched++
		if chosen(it) {
			all = append(all, it)
		}
	}
	// Those that leave may take others with them, which are not idle then.
	for _, it := range all {
		if it.idle() {
			m.leave(it)
		}
	}
	m.unskip()
}

func (it *Item) idle() bool {
	switch it.place {
	case queued, held:
		return true
	case riding:
		return it.lane.left || it.carrier.place != inFlight
	}
	return false
}

// releaseLanes answers Revoking once a lane's last settlement is in.
func (m *Machine) releaseLanes() {
	waiting := m.revokes[:0]
	for _, l := range m.revokes {
		switch {
		case l.left:
		case l.items == 0:
			m.do(Release{Lane: l.name()})
		default:
			waiting = append(waiting, l)
		}
	}
	m.revokes = waiting
}

// assign gives an item its line and its line a worker: with Partition by lane,
// to the least loaded whose handler does not stick; otherwise by the route, never by arrival, so that two
// messages of one key never run at once.
func (m *Machine) assign(it *Item) {
	if m.config.Lanes == NoOrder {
		it.line = m.workers[it.Route%uint64(len(m.workers))].lines[0]
		return
	}
	l := it.lane
	it.line = l.line
	if l.worker >= 0 {
		return
	}
	least := 0
	for i := range m.workers {
		w, best := &m.workers[i], &m.workers[least]
		if sticks := w.sticks(); sticks != best.sticks() {
			if !sticks {
				least = i
			}
			continue
		}
		if len(w.lines) < len(best.lines) {
			least = i
		}
	}
	l.worker = least
	m.workers[least].lines = append(m.workers[least].lines, l.line)
}

// unassign takes an empty lane from its worker.
func (m *Machine) unassign(l *lane) {
	if m.config.Lanes != Partition || l.items > 0 || l.worker < 0 {
		return
	}
	w := &m.workers[l.worker]
	for i := range w.lines {
		if w.lines[i] == l.line {
			w.lines = append(w.lines[:i], w.lines[i+1:]...)
			break
		}
	}
	l.worker = -1
}
