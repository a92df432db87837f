package runs

import (
	"context"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// unclaimedFor is how long messages may be due before status reports that no process claims them. A running
// consumer looks for due messages more often than once in unclaimedFor.
const unclaimedFor = time.Minute

// The method unclaimed returns the consumers of a store whose messages are due while no process works on any
// message of the consumer. Paused consumers, and consumers that a process reports, are left out, because
// status reports the problems of these consumers separately.
func (w *watching) unclaimed(ctx context.Context, l *topLook, s *assembly.Store) ([]need, error) {
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	var needs []need
	for _, v := range l.Consumers {
		if v.Store != s.Name() || v.Waiting == 0 && !v.MoreWaiting || v.State == "paused" || v.runs || w.saysNotRunning(l, v) {
			continue
		}
		pending, err := s.Pending(ctx, v.Consumer)
		if err != nil {
			return nil, err
		}
		if pending.Due == 0 || pending.InProgress > 0 {
			continue
		}
		since, err := firstDue(ctx, s, v.Consumer, now.Add(-unclaimedFor))
		if err != nil {
			return nil, err
		}
		if since.IsZero() {
			continue
		}
		needs = append(needs, need{Store: s.Name(), Consumer: v.Consumer, What: "due", Count: int(pending.Due), Why: "not claimed by any process",
			Since: since, Next: w.nextOfDue(ctx, s, v.Consumer)})
	}
	return needs, nil
}

// nextOfDue returns the command for due messages of a consumer. The command runs the consumer or, if no
// consumer of the policy processes the messages, lists the messages.
func (w *watching) nextOfDue(ctx context.Context, s *assembly.Store, name string) string {
	public, _ := admin.GenerationOf(name)
	switch {
	case w.policy.Bare:
		return w.Suggest("top")
	case command.Unworked(ctx, w.policy, s, name) != nil:
		return w.Suggest("messages", "ls", "--consumer", name, "--state", string(admin.Waiting))
	}
	return w.Suggest("run", "--consumer", public)
}

// firstDue looks for the first message of a consumer that was due before the given time. firstDue returns the
// time since which this message is due, or zero if it finds no message.
func firstDue(ctx context.Context, s *assembly.Store, consumer string, before time.Time) (time.Time, error) {
	states := []store.RowState{store.StateReceived, store.StateFailedRetryable, store.StateInProgress}
	for r, err := range command.BoxOf(s).Rows(ctx, store.RowFilter{Consumer: consumer, States: states}) {
		if err != nil {
			return time.Time{}, err
		}
		due := r.DueAt
		if r.State == store.StateInProgress {
			due = r.LockedUntil
		}
		if !due.IsZero() && due.Before(before) {
			return due, nil
		}
	}
	return time.Time{}, nil
}
