package machine

import (
	"fmt"

	"github.com/semel-go/semel/store"
)

// suspicion is about an item that was alone in its flight when contention or
// the store ended its transaction. Once that is nobody's fault. If the store
// works in between and it happens again, it is the message's own: a trigger
// that raises such an error itself, a statement that ends its connection.
type suspicion struct {
	// raised: the last run of its handler ended so, and whether the store
	// works otherwise is not known yet.
	raised bool
	// commits and outages are what the machine had counted then.
	commits, outages uint64
	// proven counts the failures after which the store did work; the last of
	// enough of them is charged, and so is each that follows.
	proven, enough int
	err            error
}

// How many failures are enough: where a statement of the message met it, and
// where the store only refused to commit, which it may do to anybody.
const (
	enoughMet     = 2
	enoughRefused = 5
)

// ownFault says what is to be thought of a message whose own failures look like
// contention or the store's.
func ownFault(err error) error {
	return fmt.Errorf("it fails alone, as if others or the store were to blame, while other transactions commit: %w", err)
}

// suspect notes a failure of a message that was alone.
func (m *Machine) suspect(it *Item, enough int, err error) {
	s := &it.troubled().suspicion
	s.raised, s.enough, s.err = true, enough, err
	s.commits, s.outages = m.commits, m.outages
}

// waitAlone lets a message wait that was alone when contention or the store
// ended its transaction. What is in other lanes goes on.
func (m *Machine) waitAlone(w *worker, it *Item) {
	it.alone, w.limit = true, 1
	t := it.troubled()
	wait := m.jitter(m.config.BackoffFirst, min(m.config.BackoffMost, m.config.MaxInMemoryWait), t.busy)
	t.busy++
	switch {
	case m.leaving(it):
		m.leave(it)
	case m.config.OneAttempt: // nothing is held there
		w.until = m.now + wait
		m.requeue(it)
	default:
		m.hold(it, m.now+wait)
	}
}

// judge decides on an item that is suspected, before it flies again. It reports
// whether its transaction is to be an empty one, which asks whether the store
// works otherwise. charged says that the failure was the message's own, and
// that it has left its queue.
func (m *Machine) judge(it *Item) (empty, charged bool) {
	if it.trouble == nil {
		return false, false
	}
	s := &it.trouble.suspicion
	switch {
	case !s.raised:
		return false, false
	case s.outages != m.outages: // the store was away: nobody knows whose fault it was
		*s = suspicion{}
		return false, false
	case s.commits == m.commits:
		return true, false
	}
	s.raised = false
	if s.proven++; s.proven < s.enough {
		return false, false
	}
	it.rolledBack = false
	m.blame(it, Failure{Class: store.ClassRetry, Err: ownFault(s.err)}, true)
	return false, true
}
