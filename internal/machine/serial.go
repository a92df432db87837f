package machine

// serialState handles contention between a consumer's own batches. Handlers of different batches may lock
// rows in different order, so batches may deadlock (case 2). Running one batch at a time for a while costs
// less than running batches again.
type serialState struct {
	on    bool
	until Time
}

// nth returns the n-th worker to consider. While only one batch runs at a time, the order of the workers changes with
// each batch, so that workers take turns.
func (m *Machine) nth(n int) int {
	if !m.oneAtATime() && !m.trial.on {
		return n
	}
	return (m.turn + n) % len(m.workers)
}

// oneAtATime reports whether a batch may begin only if no other batch is in progress.
func (m *Machine) oneAtATime() bool { return m.serial.on || m.config.OneWriter }

// oneWrites reports whether a batch is in progress. In a store with a single writer, oneWrites is also true while rows
// are being claimed.
func (m *Machine) oneWrites() bool {
	return m.oneFlies() || m.config.OneWriter && m.claims.under
}

// oneFlies reports whether a batch is in progress. A second batch that waited inside the store would hold a snapshot
// there, so that the database could not remove old versions of rows. The leases of the waiting batch's claims would
// expire although other processes could process the rows. A batch whose handler does not return does not count, because
// its connection was closed.
func (m *Machine) oneFlies() bool {
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && !f.cut {
			return true
		}
	}
	return false
}

// serialise makes the consumer's batches run one at a time for the duration SerialFor. Each further contention restarts
// the duration.
func (m *Machine) serialise() {
	if m.config.SerialFor == 0 {
		return
	}
	m.serial.until = m.now + m.config.SerialFor
	if !m.serial.on {
		m.serial.on = true
		m.do(Report{Kind: ReportSerial, Wait: m.config.SerialFor})
	}
}

func (m *Machine) endSerial() {
	if m.serial.on && m.serial.until <= m.now {
		m.serial.on = false
		m.do(Report{Kind: ReportParallel})
	}
}
