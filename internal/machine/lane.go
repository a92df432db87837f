package machine

import "github.com/semel-go/semel/source"

// lane is a lane that was given to this consumer.
type lane struct {
	name     source.Lane
	items    int   // those that have not gone
	line     *line // nil: it has no order as a lane
	paused   bool
	revoking bool
	left     bool // lost: nothing of it can be settled
}

// given takes a lane. An older epoch of it is lost without a word.
func (m *Machine) given(n source.Lane) {
	if old := m.lanes[n.ID]; old != nil {
		m.lost(old.name)
	}
	l := &lane{name: n}
	if m.config.Lanes == Partition {
		l.line = newLine(true)
	}
	m.lanes[n.ID] = l
	m.fetch.active, m.fetch.laned = m.now, true
}

// revoking drains a lane: what has not begun is dropped, what has is finished.
func (m *Machine) revoking(n source.Lane) {
	l := m.lanes[n.ID]
	if l == nil || l.name != n || l.revoking {
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
func (m *Machine) lost(n source.Lane) {
	l := m.lanes[n.ID]
	if l == nil || l.name != n {
		return
	}
	delete(m.lanes, n.ID)
	l.left = true
	if l.paused { // flow leaves it so
		m.paused--
	}
	m.dropIdle(func(it *Item) bool { return it.lane == l })
}

// releaseLanes answers Revoking once a lane's last settlement is in.
func (m *Machine) releaseLanes() {
	waiting := m.revokes[:0]
	for _, l := range m.revokes {
		switch {
		case l.left:
		case l.items == 0:
			m.do(Release{Lane: l.name})
		default:
			waiting = append(waiting, l)
		}
	}
	m.revokes = waiting
}
