package machine

import "slices"

// cancelFetch cancels the Fetch in progress; idle means that the run would end after it. A stop overrides that:
// the source then need not say whether it has more.
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

// dropIdle drops the chosen items that are not in a flight. Riders stay if their carrier is in a flight; they are
// settled with it.
func (m *Machine) dropIdle(chosen func(*Item) bool) {
	var all []*Item
	for it := m.live.head; it != nil; it = it.next {
		m.touched++
		if chosen(it) {
			all = append(all, it)
		}
	}
	// Items that leave may remove others, which are then no longer idle.
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
