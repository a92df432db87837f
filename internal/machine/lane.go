package machine

import "github.com/semel-go/semel/source"

// lane is a lane that is assigned to this consumer.
type lane struct {
	name     source.Lane
	items    int   // number of items in memory
	line     *line // nil if the lane has no order
	paused   bool
	revoking bool
	left     bool // the lane is lost, so its items cannot be acked
}

// handleGiven adds a lane. If the machine has an older epoch of the lane, that epoch is lost.
func (m *Machine) handleGiven(n source.Lane) {
	if old := m.lanes[n.ID]; old != nil {
		m.removeLane(old.name)
	}
	l := &lane{name: n}
	if m.config.Lanes == Partition {
		l.line = newLine(true)
	}
	m.lanes[n.ID] = l
	m.fetch.active, m.fetch.laned = m.now, true
}

// handleRevoking drains a lane: items that are not in a batch are dropped, and the items in batches are finished.
func (m *Machine) handleRevoking(n source.Lane) {
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

// removeLane removes a lane immediately. Running handlers of a lost lane continue. The commit of such a handler
// does no harm, because a redelivery finds the marker.
func (m *Machine) removeLane(n source.Lane) {
	l := m.lanes[n.ID]
	if l == nil || l.name != n {
		return
	}
	delete(m.lanes, n.ID)
	l.left = true
	if l.paused { // flow does not change a lane that is lost
		m.paused--
	}
	m.dropIdle(func(it *Item) bool { return it.lane == l })
}

// releaseLanes releases a revoked lane after its last message was acked or nacked.
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
