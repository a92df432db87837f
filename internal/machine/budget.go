package machine

import "time"

// budgetState plans retries so that they are no storm (C5). It is a token bucket,
// kept as the moment at which it was, or will be, empty (the generic cell rate
// algorithm, ITU-T I.371, 1993): each retry moves it on by RetryCost, each first
// attempt back by RetryShare, and nothing that was not used is kept for longer than
// RetrySaved. A retry that finds the bucket empty is planned for later; nobody is
// charged for that.
type budgetState struct {
	empty  Time
	tellAt Time // what waits is told no earlier
}

// tellBudget is how often it is told that retries wait.
const tellBudget = time.Minute

// first takes that a message is tried for the first time.
func (m *Machine) first() {
	b := &m.budget
	b.empty = max(b.empty-m.config.RetryShare, m.now-m.config.RetrySaved)
}

// plan is in how long a retry may begin that would begin in wait.
func (m *Machine) plan(wait time.Duration) time.Duration {
	b := &m.budget
	b.empty = max(b.empty, m.now-m.config.RetrySaved) + m.config.RetryCost
	put := b.empty - m.now
	if put <= wait {
		return wait
	}
	if b.tellAt <= m.now {
		b.tellAt = m.now + tellBudget
		m.do(Report{Kind: ReportBudget, Wait: put})
	}
	return put
}
