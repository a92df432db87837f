package machine

import "time"

// budgetState spreads retries over time (C5) with a token bucket. The bucket is stored as one time: the time at which
// the bucket was or will be empty (the generic cell rate algorithm, ITU-T I.371, 1993). Each retry makes this time
// later by RetryCost, and each first attempt makes the time earlier by RetryShare. RetrySaved is the capacity of the
// bucket. If the bucket is empty, a retry starts later. The delay does not count as an attempt.
type budgetState struct {
	empty  Time
	tellAt Time // the earliest time of the next report
}

// tellBudget is the minimum interval between reports that retries are delayed.
const tellBudget = time.Minute

// recordFirstAttempt records the first attempt of a message.
func (m *Machine) recordFirstAttempt() {
	b := &m.budget
	b.empty = max(b.empty-m.config.RetryShare, m.now-m.config.RetrySaved)
}

// planRetry returns the delay of a retry that, without the budget, would start after wait.
func (m *Machine) planRetry(wait time.Duration) time.Duration {
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
