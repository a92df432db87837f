package machine

import (
	"fmt"

	"github.com/semel-go/semel/store"
)

// suspicion is the history of an item that was alone in its batch when contention or the store ended its transaction.
// The first such failure does not count as an attempt. If the transaction fails again while other transactions commit,
// the message itself causes the failure: for example, a trigger raises the error, or a statement ends its own
// connection.
type suspicion struct {
	// raised means that contention or the store ended the transaction of the last run, and that it is not known yet
	// whether the store works for other messages.
	raised bool
	// commits and outages are the values of the machine's counters at the time of the last run.
	commits, outages uint64
	// provenFailures is the number of failures after which the store worked for other messages. When the number reaches
	// provenLimit, the failures count as attempts of the message.
	provenFailures, provenLimit int
	err                         error
}

// The values of suspicion.provenLimit: enoughMet is used if a statement of the message failed. enoughRefused is used if
// the store only refused to commit, which can happen to any message.
const (
	enoughMet     = 2
	enoughRefused = 5
)

// ownFault wraps the error of a message that itself causes failures that look like contention or an outage.
func ownFault(err error) error {
	return fmt.Errorf("it fails alone, as if others or the store were to blame, while other transactions commit: %w", err)
}

// suspect records a failure of a message that was alone in its batch.
func (m *Machine) suspect(it *Item, enough int, err error) {
	s := &it.ensureTrouble().suspicion
	s.raised, s.provenLimit, s.err = true, enough, err
	s.commits, s.outages = m.commits, m.outages
}

// waitAlone makes a message wait that was alone in its batch when contention or the store ended its
// transaction. Other lanes continue.
func (m *Machine) waitAlone(w *worker, it *Item) {
	it.runAlone, w.batchLimit = true, 1
	t := it.ensureTrouble()
	wait := m.jitter(m.config.BackoffFirst, min(m.config.BackoffMost, m.config.MaxInMemoryWait), t.busy)
	t.busy++
	switch {
	case m.leaving(it):
		m.leave(it)
	case m.config.OneAttempt: // in this mode no item waits
		w.backoffUntil = m.now + wait
		m.requeue(it)
	default:
		m.hold(it, m.now+wait)
	}
}

// judge decides about a suspected item before its handler runs again. The result empty means that the item's next
// transaction must run no handler, in order to find out whether the store works. The result charged means that the
// message itself caused the failure and was removed from its queue.
func (m *Machine) judge(it *Item) (empty, charged bool) {
	if it.trouble == nil {
		return false, false
	}
	s := &it.trouble.suspicion
	switch {
	case !s.raised:
		return false, false
	case s.outages != m.outages: // the store was down, so the cause of the failure is unknown
		*s = suspicion{}
		return false, false
	case s.commits == m.commits:
		return true, false
	}
	s.raised = false
	if s.provenFailures++; s.provenFailures < s.provenLimit {
		return false, false
	}
	it.rolledBack = false
	m.blame(it, Failure{Class: store.ClassRetry, Err: ownFault(s.err)}, true)
	return false, true
}
