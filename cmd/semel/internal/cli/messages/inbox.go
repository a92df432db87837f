package messages

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

func inboxCommand(c *command.CLI) *cobra.Command {
	return command.Group("inbox", "Show and repair waiting messages",
		rowList(c, "List what waits, is worked on, or will be", command.WaitingStates()...), inboxStats(c), rowShow(c),
		rowAct(c, admin.Retry, store.StateFailedRetryable, store.StateReceived), rowAct(c, admin.Release, store.StateInProgress),
		rowAct(c, admin.Skip, store.StateParked, store.StateFailedRetryable),
		rowResolve(c, admin.ResolvedDone.String()), rowAct(c, admin.Discard, command.WaitingStates()...))
}

// pending is what of a consumer waits in a store.
type pending struct {
	Store      string  `json:"store"`
	Consumer   string  `json:"consumer"`
	Due        int64   `json:"due"`
	InProgress int64   `json:"in_progress"`
	Later      int64   `json:"later"`
	Blocked    int64   `json:"blocked"`
	Next       float64 `json:"next_seconds"`
	Oldest     float64 `json:"oldest_seconds"`
}

func inboxStats(c *command.CLI) *cobra.Command {
	l := &command.Listing{}
	var store string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count waiting messages by state",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			a, err := c.OpenBoxes(cmd.Context(), store)
			if err != nil {
				return err
			}
			defer c.Close(a)
			if len(a.Policy().Consumers) == 0 && c.Consumer == "" {
				return command.UsageError("--consumer is missing: without a policy, name the consumer")
			}
			if err := c.RefuseUnknownConsumer(cmd.Context(), a, c.Consumer); err != nil {
				return err
			}
			return stats(cmd.Context(), c, a, l)
		},
	}
	l.Add(c, cmd, 0, "consumers")
	command.StoreFlag(cmd, &store)
	command.RefuseEmpty(cmd, "store", "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

// stats prints what waits of each consumer of the policy, or of the one that was
// named.
func stats(ctx context.Context, c *command.CLI, a *assembly.Assembly, l *command.Listing) error {
	all := []pending{}
	for _, s := range a.Stores {
		for _, name := range consumersOf(c, a, s.Name()) {
			name, err := s.KeptAs(ctx, name)
			if err != nil {
				return command.Failed(err)
			}
			p, err := s.Pending(ctx, name)
			if err != nil {
				return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
			}
			all = append(all, pending{Store: s.Name(), Consumer: name, Due: p.Due, InProgress: p.InProgress, Later: p.Later, Blocked: p.Blocked, Next: p.Next.Seconds(), Oldest: p.Oldest.Seconds()})
		}
	}
	printOverdue(c, a, all)
	if c.JSON {
		return c.WriteJSON(struct {
			Consumers []pending `json:"consumers"`
		}{all})
	}
	blocked := slices.ContainsFunc(all, func(p pending) bool { return p.Blocked > 0 })
	span := func(title string, of func(pending) float64) output.Column[pending] {
		return output.Text(title, func(p pending) string {
			return time.Duration(of(p) * float64(time.Second)).Round(time.Second).String()
		})
	}
	return command.PrintTable(c, l, all, output.Fixed(
		output.Text("STORE", func(p pending) string { return p.Store }).IfVaried(),
		output.Flexible("CONSUMER", func(p pending) string { return p.Consumer }),
		output.Number("DUE", func(p pending) int64 { return p.Due }), output.Number("IN PROGRESS", func(p pending) int64 { return p.InProgress }),
		output.Number("LATER", func(p pending) int64 { return p.Later }), output.Number("BLOCKED", func(p pending) int64 { return p.Blocked }).If(blocked),
		span("NEXT IN", func(p pending) float64 { return p.Next }), span("OLDEST", func(p pending) float64 { return p.Oldest }),
	))
}

// printOverdue prints the consumers whose oldest message is older than their policy
// allows.
func printOverdue(c *command.CLI, a *assembly.Assembly, all []pending) {
	for _, p := range all {
		oldest := time.Duration(p.Oldest * float64(time.Second)).Round(time.Second)
		if most := a.PendingAge(p.Consumer); most > 0 && oldest > most {
			fmt.Fprintf(c.Err, "consumer %s: the oldest message has waited for %v, longer than its pending_age, %v\n", p.Consumer, oldest, most)
		}
	}
}

// consumersOf are those that the policy has for a store, or the one that was named.
func consumersOf(c *command.CLI, a *assembly.Assembly, store string) []string {
	if c.Consumer != "" {
		return []string{c.Consumer}
	}
	var names []string
	for _, consumer := range a.Policy().Consumers {
		if consumer.Store == store {
			names = append(names, consumer.Name)
		}
	}
	return names
}
