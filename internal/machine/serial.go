package machine

// serialState handles contention between a consumer's own batches: handlers lock rows in an order that differs
// from batch to batch, and so batches deadlock (case 2). Running one batch at a time for a while costs less than
// running batches again.
type serialState struct {
	on    bool
	until Time
}

// nth returns the worker to ask as the n-th, so that workers take turns if one flies at a time.
func (m *Machine) nth(n int) int {
	if !m.oneAtATime() && !m.trial.on {
		return n
	}
	return (m.turn + n) % len(m.workers)
}

// oneAtATime reports whether a batch begins only if no other is in progress.
func (m *Machine) oneAtATime() bool { return m.serial.on || m.config.OneWriter }

// oneWrites reports whether a batch is in progress or, if the store treats them alike, a claim.
func (m *Machine) oneWrites() bool {
	return m.oneFlies() || m.config.OneWriter && m.claims.under
}

// oneFlies reports whether a batch is in progress. A second batch that waited inside the store would hold a
// snapshot there, so that old versions of rows that change often could not be removed; and its claims' leases
// would expire although other processes could work on them. A handler that does not return does not count, because
// it has lost its connection.
func (m *Machine) oneFlies() bool {
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && !f.cut {
			return true
		}
	}
	return false
}

// serialise makes this consumer's batches run one at a time for a while, which each contention restarts.
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
