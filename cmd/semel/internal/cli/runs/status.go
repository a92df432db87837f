package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

func statusCommand(c *command.CLI) *cobra.Command {
	var place string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what needs a person",
		Long: `Show what needs a person, the oldest first, each with the command to type next:
parked and dead-lettered messages, messages that are due and that no process
has claimed for a minute, gaps, pauses, and consumers that are not running or
not ready.

Messages, gaps and pauses come from the stores; whether a consumer runs and is
ready comes from the run at the address of the policy key listen. Without that
key, status does not know it, and says so if nothing else needs a person.

Exit codes: 0 nothing needs a person; 4 something does.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, store, err := c.LoadFor(place)
			if err != nil {
				return err
			}
			a, err := c.Open(p, store, false)
			if err != nil {
				return err
			}
			defer closeWithTimeout(a)
			w := &watcher{CLI: c, policy: p, stores: storesOf(a), now: time.Now, call: call}
			return w.status(cmd.Context(), a)
		},
	}
	return withControlStore(c, cmd, &place)
}

// problem is a problem that a person must solve.
type problem struct {
	Store    string `json:"store,omitempty"`
	Consumer string `json:"consumer,omitempty"`
	// The field What is one of: parked, dead, due, gap, paused, not running, not ready, no run, not readable.
	What  string `json:"what"`
	Count int    `json:"count,omitempty"`
	Why   string `json:"why,omitempty"`
	// Since is the time at which the problem started, or the receive time of the oldest message; zero if
	// unknown.
	Since time.Time `json:"since,omitzero"`
	// Next is the command that the person should run next.
	Next string `json:"next"`
}

// status prints all problems that need a person.
func (w *watcher) status(ctx context.Context, a *assembly.Assembly) error {
	l := w.look(ctx)
	needs, retried := w.runProblems(l), []problem(nil)
	for _, s := range a.Stores {
		if slices.ContainsFunc(l.unreadable, func(n problem) bool { return n.Store == s.Name() }) {
			continue
		}
		found, err := w.storedProblems(ctx, s)
		if err != nil {
			return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		due, again, err := w.unclaimedProblems(ctx, l, s)
		if err != nil {
			return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		needs, retried = slices.Concat(needs, found, due), append(retried, again...)
	}
	slices.SortStableFunc(needs, func(a, b problem) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Consumer, b.Consumer))
	})
	if err := w.printNeeds(l.At, needs, retried); err != nil {
		return command.Failed(err)
	}
	if len(needs) == 0 {
		return nil
	}
	return command.Found(errors.New(output.WithVerb(len(needs), "thing", "needs", "need") + " a person"))
}

// runProblems returns the problems that are found by asking the stores and the process: stores and
// processes that do not respond, and consumers that are paused, not running or not ready.
func (w *watcher) runProblems(l *topLook) []problem {
	needs := slices.Clone(l.unreadable)
	for i := range needs {
		needs[i].Next = w.Suggest(map[bool]string{true: "top", false: "check"}[w.policy.Bare]) // check needs a policy
	}
	if l.noRun != "" {
		needs = append(needs, problem{What: "no run", Why: l.noRun, Next: w.Suggest("run")})
	}
	for _, v := range l.Consumers {
		n := problem{Store: v.Store, Consumer: v.Consumer, What: v.State, Why: v.Error, Since: v.pausedSince}
		switch {
		case v.State == "paused":
			n.Next = w.Suggest("consumers", "resume", v.Consumer, "--because", "WHY")
		case v.State == "not ready":
			n.Next = w.Suggest("check", "--consumer", v.Consumer)
		case w.saysNotRunning(l, v):
			n.What, n.Why, n.Next = "not running", "the run at "+w.policy.Listen.Address+" does not run it", w.Suggest("run", "--consumer", v.Consumer)
		default:
			continue
		}
		needs = append(needs, n)
	}
	return needs
}

// saysNotRunning reports whether the process at the address of listen says that it does not run a consumer.
func (w *watcher) saysNotRunning(l *topLook, v topView) bool {
	return w.policy.Listen.Address != "" && l.noRun == "" && !v.Unread && !v.isRunning && w.policy.Consumer(v.Consumer) != nil
}

// storedProblems returns the problems that the store has recorded: parked and dead-lettered messages by
// consumer, state and reason, and gaps by consumer.
func (w *watcher) storedProblems(ctx context.Context, s *assembly.Store) ([]problem, error) {
	box := command.BoxOf(s)
	all, err := box.Failures(ctx, store.RowFilter{Consumer: w.Consumer, States: []store.RowState{store.StateParked, store.StateDeadLettered}})
	if err != nil {
		return nil, err
	}
	var needs []problem
	for _, g := range all {
		n := problem{Store: box.Store, Consumer: g.Consumer, What: "parked", Count: g.Count, Why: string(g.Reason), Since: g.First}
		if g.State == admin.Dead {
			n.What = "dead"
		}
		n.Next = w.Suggest("messages", "ls", "--consumer", g.Consumer, "--state", n.What, "--reason", n.Why)
		needs = mergeProblem(needs, n)
	}
	gaps, err := box.StreamsOf(ctx, operate.StreamFilter{Consumer: w.Consumer, Gaps: true})
	if err != nil {
		return nil, err
	}
	for _, stream := range gaps {
		needs = mergeProblem(needs, problem{Store: box.Store, Consumer: stream.Consumer, What: "gap", Count: 1, Why: "later versions wait for a missing one",
			Since: stream.Oldest, Next: w.Suggest("gaps", "ls", "--consumer", stream.Consumer)})
	}
	return needs, nil
}

// mergeProblem adds the problem n to the slice needs. If needs already has a problem with the same store and the same
// next command, mergeProblem combines the two problems.
func mergeProblem(needs []problem, n problem) []problem {
	at := slices.IndexFunc(needs, func(is problem) bool { return is.Store == n.Store && is.Next == n.Next })
	if at < 0 {
		return append(needs, n)
	}
	needs[at].Count += n.Count
	if n.Since.Before(needs[at].Since) {
		needs[at].Since = n.Since
	}
	return needs
}

// runUnknown is the line that follows "nothing needs you" if status cannot ask a process.
const runUnknown = "not known: whether a consumer runs (the policy has no key listen)"

// printNeeds prints the problems. Messages that a person has just retried are no problem, and come last.
func (w *watcher) printNeeds(now time.Time, needs, retried []problem) error {
	if w.JSON {
		return w.WriteJSON(struct {
			At      time.Time `json:"at"`
			Needs   []problem `json:"needs"`
			Retried []problem `json:"retried,omitempty"`
		}{now, append([]problem{}, needs...), retried})
	}
	var lines []string
	for _, n := range needs {
		lines = append(lines, w.Wrapped(n.line(now), 4), "  "+n.Next)
	}
	if len(needs) == 0 {
		lines = append(lines, "nothing needs you")
	}
	for _, n := range retried {
		lines = append(lines, w.Wrapped(n.line(now), 4))
	}
	if len(needs) == 0 && w.policy.Listen.Address == "" {
		lines = append(lines, w.Wrapped(runUnknown, 4))
	}
	_, err := fmt.Fprintln(w.Out, strings.Join(lines, "\n"))
	return err
}

func (n problem) line(now time.Time) string {
	what := n.What
	if n.Count > 0 {
		what = fmt.Sprintf("%d %s", n.Count, n.What)
		if n.What == "gap" && n.Count > 1 {
			what += "s"
		}
	}
	line := cmp.Or(legible.Printable(n.Consumer), "store "+n.Store) + ": " + what
	if n.Consumer == "" && n.Store == "" {
		line = what
	}
	if n.Why != "" {
		line += ", " + legible.Printable(n.Why)
	}
	if !n.Since.IsZero() {
		line += ", for " + age(now, n.Since)
	}
	return line
}
