package machine

import "time"

// budgetState spreads retries over time (C5). budgetState is a token bucket, stored as the time at which the
// bucket was or will be empty (the generic cell rate algorithm, ITU-T I.371, 1993): each retry moves that time
// forward by RetryCost, each first attempt back by RetryShare, and at most RetrySaved is saved. A retry that finds
// the bucket empty is planned for later; no message is charged for that.
type budgetState struct {
	empty  Time
	tellAt Time // the earliest time of the next report
}

// tellBudget is the minimum interval between reports that retries wait.
const tellBudget = time.Minute

// first records the first attempt of a message.
func (m *Machine) first() {
	b := &m.budget
	b.empty = max(b.empty-m.config.RetryShare, m.now-m.config.RetrySaved)
}

// plan returns the delay of a retry that would begin after wait without the budget.
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
