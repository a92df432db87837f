package machine

// trialState is the state after many attempts in a row have failed, whatever their messages: probably a system
// that the handler calls is down, and all messages would fail. One message is tried at a time, after a failure
// with a delay of at least RetryCost, until one succeeds (C6). Flights without handlers, such as receipts and
// parking, continue.
type trialState struct {
	on    bool
	row   int  // failed attempts since the last success
	until Time // time of the next attempt
}

// tryFailed records that an attempt of an item failed and may be retried.
func (m *Machine) tryFailed(it *Item, err error) {
	t := &m.trial
	if m.config.OneAttempt { // the caller decides how many messages it passes
		return
	}
	if t.row++; t.row < m.config.TrialAfter {
		return
	}
	t.until = m.now + m.config.RetryCost
	if !t.on {
		t.on = true
		m.do(Report{Kind: ReportTrial, Item: it, N: t.row, Err: err})
	}
}

// trySucceeded records that a handler's effect is committed.
func (m *Machine) trySucceeded() {
	if m.trial.on {
		m.do(Report{Kind: ReportTrialEnds})
	}
	m.trial = trialState{}
	m.handlerWorks()
}

// tries reports whether an item's next flight runs its handler and must be the only flight that does.
func (m *Machine) tries(it *Item) bool { return m.oneTry() && it.as == AsApplied }

// mayTry reports whether a handler may begin now. A handler that does not return has lost its connection and is
// not waited for.
func (m *Machine) mayTry() bool {
	if !m.oneTry() {
		return true
	}
	if m.tryAt() > m.now {
		return false
	}
	for i := range m.workers {
		if f := m.workers[i].flight; f != nil && !f.cut && f.runsHandlers() {
			return false
		}
	}
	return true
}

// runsHandlers reports whether a flight runs handlers, as far as is known when it begins.
func (f *Flight) runsHandlers() bool {
	for i := range f.Entries {
		if f.Entries[i].As == AsApplied {
			return true
		}
	}
	return false
}
