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
		for _, l := range w.own {
			add(l)
		}
		s.Kept += len(w.ready) + w.load // lines that still have their worker
	}
	return s
}
