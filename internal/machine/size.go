package machine

// Size is what a machine keeps beside the deliveries that it holds, and what its
// steps have cost. Neither may grow with what has passed it (law 11).
type Size struct {
	// Queue is how many items the longest of its queues has room for.
	Queue int
	// Kept counts what its lists and maps hold of deliveries: nothing once it
	// holds none.
	Kept int
	// Touched counts the items that its steps have looked at or moved, one by
	// one, since its start.
	Touched int
}

// Size returns the present size.
func (m *Machine) Size() Size {
	s := Size{Touched: m.touched, Kept: len(m.carriers) + len(m.held) + len(m.skipped) + len(m.settles.now) + len(m.settles.again)}
	for _, l := range m.lanes {
		if l.queue != nil {
			s.Queue = max(s.Queue, cap(l.queue.items))
			s.Kept += l.queue.blockers.count
		}
	}
	for i := range m.workers {
		for _, q := range m.workers[i].queues {
			s.Queue = max(s.Queue, cap(q.items))
		}
		s.Kept += len(m.workers[i].queues) - ownQueues // lanes that still have their worker
	}
	return s
}
