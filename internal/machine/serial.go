package machine

// serialState is contention between a consumer's own batches: their effects
// lock rows in the order of handlers, which differs from batch to batch, and so
// they deadlock (case 2). One transaction-level lock for a while costs less
// than running again.
type serialState struct {
	on    bool
	until Time
}

// nth is the worker to ask as the n-th: where one flies at a time, none is left
// behind.
func (m *Machine) nth(n int) int {
	if !m.oneAtATime() && !m.trial.on {
		return n
	}
	return (m.turn + n) % len(m.workers)
}

// oneAtATime reports whether a batch begins only when no other is under way.
func (m *Machine) oneAtATime() bool { return m.serial.on || m.config.OneWriter }

// oneWrites reports whether a batch is under way, or, where that is the same to the
// store, a claim.
func (m *Machine) oneWrites() bool {
	return m.oneFlies() || m.config.OneWriter && m.claims.under
}

// oneFlies reports whether a batch is under way: one that waited for it inside
// the store would hold a snapshot there, and old versions of hot rows could
// not be cleared away; and the leases of its claims would end there, though
// others could have worked on them. A handler that does not end has lost its
// connection.
func (m *Machine) oneFlies() bool {
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && !f.cut {
			return true
		}
	}
	return false
}

// serialise lets this consumer's batches run one at a time for a while; each
// contention begins the while anew.
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
