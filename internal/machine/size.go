package machine

// Size describes the memory that a machine uses in addition to the deliveries in memory, and the work of its steps.
// Memory and work must not grow with the number of past deliveries (law 11).
type Size struct {
	// Queue is the capacity of the longest queue.
	Queue int
	// Kept is the number of entries in lists and maps that refer to deliveries. Without deliveries in memory, Kept is
	// 0.
	Kept int
	// Touched is the number of items that calls of Step have examined or moved since the start.
	Touched int
}

// Size returns the current size.
func (m *Machine) Size() Size {
	s := Size{Touched: m.touched, Kept: len(m.carriers) + len(m.formers) + len(m.held) + len(m.skipped) + len(m.settles.now) + len(m.settles.again)}
	add := func(l *line) {
		s.Queue = max(s.Queue, cap(l.items))
		s.Kept += l.blockers.count
	}
	for _, l := range m.lanes {
		if l.line != nil {
			add(l.line)
		}
	}
	for _, l := range m.lines {
		add(l)
	}
	for _, l := range m.claims.lines {
		add(l)
	}
	s.Kept += len(m.lines) + len(m.claims.lines)
	for i := range m.workers {
		w := &m.workers[i]
		for _, l := range w.unorderedLines {
			add(l)
		}
		s.Kept += len(w.ready) + w.load // items of queues that are assigned to a worker
	}
	return s
}
