package machine

import "slices"

// cancelFetch cancels the running Fetch. The parameter idle means that the run would end after the Fetch. If the run is
// stopped, cancelFetch is called again without idle, because the source need no longer say whether it has more
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

// dropIdle drops the chosen items that are not in a batch. A copy that waits for an item in a batch is not dropped,
// because it ends together with that item.
func (m *Machine) dropIdle(chosen func(*Item) bool) {
	var all []*Item
	for it := m.live.head; it != nil; it = it.next {
		m.touched++
		if chosen(it) {
			all = append(all, it)
		}
	}
	// When an item is dropped, other items may be dropped too; these items are no longer idle.
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
