package machine

import "slices"

// cancelFetch ends the Fetch under way; idle says that the run would end for it.
// A stop takes that back: the source need not say any more whether it has more.
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
