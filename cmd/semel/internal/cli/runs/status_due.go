package runs

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// unclaimedFor is how long messages may be due before status reports that no process claims them. A running
// consumer looks for due messages more often than once in unclaimedFor.
const unclaimedFor = time.Minute

// unclaimedProblems returns the consumers of a store whose messages are due while no process works on any
// message of the consumer. The result retried has the consumers whose messages a person made due within
// unclaimedFor; a person need not do anything about them yet. Paused consumers, and consumers that a process
// reports, are left out, because status reports the problems of these consumers separately.
func (w *watcher) unclaimedProblems(ctx context.Context, l *topLook, s *assembly.Store) (needs, retried []problem, err error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range l.Consumers {
		if v.Store != s.Name() || v.Waiting == 0 && !v.MoreWaiting || v.State == "paused" || v.isRunning || w.saysNotRunning(l, v) {
			continue
		}
		pending, err := s.Pending(ctx, v.Consumer)
		if err != nil {
			return nil, nil, err
		}
		if pending.Due == 0 || pending.InProgress > 0 {
			continue
		}
		since, again, err := firstDue(ctx, s, v.Consumer, now.Add(-unclaimedFor))
		n := problem{Store: s.Name(), Consumer: v.Consumer, What: "due", Next: w.nextOfDue(ctx, s, v.Consumer)}
		switch {
		case err != nil:
			return nil, nil, err
		case !since.IsZero():
			n.Count, n.Why, n.Since = int(pending.Due), "not claimed by any process", since
			needs = append(needs, n)
		case len(again) > 0:
			n.Count, n.Why, n.Since = len(again), "retried less than a minute ago", slices.MinFunc(again, time.Time.Compare)
			retried = append(retried, n)
		}
	}
	return needs, retried, nil
}

// nextOfDue returns the command for due messages of a consumer. The command runs the consumer or, if no
// consumer of the policy processes the messages, lists the messages.
func (w *watcher) nextOfDue(ctx context.Context, s *assembly.Store, name string) string {
	public, _ := admin.GenerationOf(name)
	switch {
	case w.policy.Bare:
		return w.Suggest("top")
	case command.Unworked(ctx, w.policy, s, name) != nil:
		return w.Suggest("messages", "ls", "--consumer", name, "--state", string(admin.Waiting))
	}
	return w.Suggest("run", "--consumer", public)
}

// firstDue looks for the first message of a consumer that was due before the given time. The result since is the
// time since which this message is due, or zero if firstDue finds no message. In that case, the result retried has
// the due times of the messages that a person made due.
func firstDue(ctx context.Context, s *assembly.Store, consumer string, before time.Time) (since time.Time, retried []time.Time, err error) {
	states := []store.RowState{store.StateReceived, store.StateFailedRetryable, store.StateInProgress}
	for r, err := range command.BoxOf(s).Rows(ctx, store.RowFilter{Consumer: consumer, States: states}) {
		if err != nil {
			return time.Time{}, nil, err
		}
		due := r.DueAt
		if r.State == store.StateInProgress {
			due = r.LockedUntil
		}
		switch {
		case due.IsZero():
		case due.Before(before):
			return due, nil, nil
		case madeDue(&r):
			retried = append(retried, due)
		}
	}
	return time.Time{}, retried, nil
}

// madeDue reports whether a person made a waiting row due. The row then has the reason for which it was parked, and was
// due at its last change. A row whose handler has failed is due later than its last change.
func madeDue(r *store.StoredRow) bool {
	return r.Reason != "" && r.State != store.StateInProgress && !r.DueAt.After(r.ChangedAt)
}
