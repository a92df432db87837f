package machine

import "slices"

// cancelFetch cancels the running Fetch. idle means that the run would end afterwards. If the run stops,
// cancelFetch is called again without idle, because the source then need not say whether it has more
// messages.
func (m *Machine) cancelFetch(idle bool) {
	f := &m.fetch
	if !f.under || f.canceled && (idle || !f.ends) {
		return
	}
	f.canceled, f.ends = true, idle
	m.do(CancelFetch{Idle: idle})
}

func (m *Machine) stopRun(f *Flight) {
	if f.running && !f.stopped {
		m.do(StopRun{Flight: f})
	}
	f.stopped = true
}

// dropIdle drops the chosen items that are not in a batch. If a copy waits for an item that is in a batch,
// the copy is not dropped; it ends together with that item.
func (m *Machine) dropIdle(chosen func(*Item) bool) {
	var all []*Item
	for it := m.live.head; it != nil; it = it.next {
		m.touched++
		if chosen(it) {
			all = append(all, it)
		}
	}
	// An item that leaves may remove other items. Those items are then no longer idle.
	for _, it := range all {
		if it.idle() {
			m.leave(it)
		}
	}
	m.skipped = slices.DeleteFunc(m.skipped, func(it *Item) bool { return it.state != skipped })
}

func (it *Item) idle() bool {
	switch it.state {
	case queued, held, awaited, skipped:
		return true
	case riding:
		return it.lane.left || it.carrier.state != inFlight
	}
	return false
}
