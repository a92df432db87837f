package machine

// trialState is the state after many consecutive attempts, of any messages, have failed. Probably a system that the
// handler calls is down, so that all messages would fail. Therefore one message is tried at a time until an attempt
// succeeds (C6). After a failure, the delay is at least RetryCost. Batches without handlers, such as batches that
// receive or park messages, continue.
type trialState struct {
	on    bool
	row   int  // number of failed attempts since the last success
	until Time // time of the next attempt
}

// tryFailed records that an attempt of an item failed, and that the item may be retried.
func (m *Machine) tryFailed(it *Item, err error) {
	t := &m.trial
	if m.config.OneAttempt { // the caller of Process decides how many messages to pass
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

// tries reports whether an item's next batch runs a handler while only one message is tried at a time.
func (m *Machine) tries(it *Item) bool { return m.oneTry() && it.markAs == AsApplied }

// mayTry reports whether a handler may begin now. The machine does not wait for a handler that does not return, because
// its connection was closed.
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

// runsHandlers reports whether a batch will probably run handlers.
func (f *Flight) runsHandlers() bool {
	for i := range f.Entries {
		if f.Entries[i].As == AsApplied {
			return true
		}
	}
	return false
}
