package machine

// trialState is of a consumer of which many attempts in a row have failed, of
// whichever messages: most likely what its handler calls is away, and all would fail.
// One message is tried at a time, and after a failure no sooner than a retry costs,
// until one succeeds (C6). What runs no handler goes on: receipts, what is set aside.
type trialState struct {
	on    bool
	row   int  // attempts that failed since one succeeded
	until Time // nothing is tried before
}

// tryFailed takes that an attempt of an item failed in a way that may pass.
func (m *Machine) tryFailed(it *Item, err error) {
	t := &m.trial
	if m.config.OneAttempt { // whoever calls decides how many it brings
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

// trySucceeded takes that a handler's effect is committed.
func (m *Machine) trySucceeded() {
	if m.trial.on {
		m.do(Report{Kind: ReportTrialEnds})
	}
	m.trial = trialState{}
	m.handlerWorks()
}

// tries reports whether an item's next flight runs its handler, and is the only one
// that does.
func (m *Machine) tries(it *Item) bool { return m.oneTry() && it.as == AsApplied }

// mayTry reports whether a handler may begin now. One that does not end has lost its
// connection, and is not waited for.
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

// runsHandlers reports whether a flight runs any, as far as is known when it begins.
func (f *Flight) runsHandlers() bool {
	for i := range f.Entries {
		if f.Entries[i].As == AsApplied {
			return true
		}
	}
	return false
}
