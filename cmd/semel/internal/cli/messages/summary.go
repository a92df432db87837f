package messages

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

const (
	// groupsShown is the default of --limit for a summary. On a terminal the default is smaller if the screen has
	// fewer lines.
	groupsShown = 40
	// otherLines is the number of lines of a screen that are not groups: the titles, the count and the prompt.
	otherLines = 3
)

func summaryCommand(c *command.CLI) *cobra.Command {
	f, l, by := &filter{}, &command.Listing{}, ""
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Count messages by failure or state",
		Long: `Count the messages that need a person by failure group: one consumer, state and
reason with similar errors; the largest groups first, as many as the screen
has lines. With --by state, count the waiting and running messages of each
consumer.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch by {
			case "failure":
				if c.OutTerminal && c.Height > 0 && !cmd.Flags().Changed("limit") {
					l.Limit = min(l.Limit, max(1, c.Height-otherLines))
				}
				return openAndShow(c, cmd, f, l, func(ctx context.Context, a *assembly.Assembly, chosen store.RowFilter) error {
					return summarize(ctx, c, a, chosen, f.group, l)
				})
			case "state":
				return byState(c, cmd, f, l)
			}
			return command.UsageError("--by %q: use failure or state", by)
		},
	}
	l.Add(c, cmd, groupsShown, "lines")
	cmd.Flags().StringVar(&by, "by", "failure", "failure or state")
	command.CompleteFlag(cmd, "by", []string{"failure", "state"})
	return f.add(c, cmd, attention()...)
}

// summarize prints the number of chosen rows by failure group.
func summarize(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, group string, l *command.Listing) error {
	groups := []operate.Group{}
	for _, s := range a.Stores {
		found, err := command.BoxOf(s).Failures(ctx, f)
		if err != nil {
			return command.Failed(err)
		}
		groups = append(groups, slices.DeleteFunc(found, func(g operate.Group) bool { return group != "" && g.ID != group })...)
	}
	operate.SortGroups(groups)
	rows, shown := 0, groups
	for _, g := range groups {
		rows += g.Count
	}
	if l.Limit > 0 {
		shown = groups[:min(l.Limit, len(groups))]
	}
	if c.JSON {
		return c.WriteJSON(map[string]any{"groups": shown, "count": rows})
	}
	if err := command.PrintTable(c, l, shown, groupColumns); err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "%s, %s\n", output.Counted(rows, rows, "message"), output.Counted(len(shown), len(groups), "group"))
	if rows > 0 {
		return nil
	}
	return pointAtReasons(ctx, c, a, f)
}

// groupColumns returns the columns of the table of failure groups.
func groupColumns(_ []operate.Group, wide bool) []output.Column[operate.Group] {
	return []output.Column[operate.Group]{
		output.Text("GROUP", func(g operate.Group) string { return g.ID }),
		output.Text("COUNT", func(g operate.Group) string { return fmt.Sprintf("%5d", g.Count) }),
		output.Text("STORE", func(g operate.Group) string { return g.Store }).IfVaried(),
		output.Text("STATE", func(g operate.Group) string { return string(g.State) }).If(wide).OrVaried(),
		output.Flexible("REASON", func(g operate.Group) string { return string(g.Reason) }),
		output.Flexible("CONSUMER", func(g operate.Group) string { return g.Consumer }).If(wide).OrVaried(),
		output.Text("OLDEST", func(g operate.Group) string { return output.Age(g.First, time.Now()) }),
		output.Flexible("LAST ERROR", func(g operate.Group) string { return operate.WithoutReason(g.Reason, g.Error) }),
	}
}

// pendingCounts has the numbers of unfinished messages of a consumer in a store.
type pendingCounts struct {
	Store      string  `json:"store"`
	Consumer   string  `json:"consumer"`
	Due        int64   `json:"due"`
	InProgress int64   `json:"in_progress"`
	Later      int64   `json:"later"`
	Blocked    int64   `json:"blocked"`
	Next       float64 `json:"next_seconds"`
	Oldest     float64 `json:"oldest_seconds"`
}

// byState prints the number of unfinished messages by consumer and state.
func byState(c *command.CLI, cmd *cobra.Command, f *filter, l *command.Listing) error {
	if given := givenFilter(cmd); given != "" && given != "consumer" {
		return command.UsageError("--%s does not go with --by state, which counts all messages that are not finished", given)
	}
	if err := l.Check(c, cmd); err != nil {
		return err
	}
	a, err := c.OpenBoxes(cmd.Context(), f.store)
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
	all, err := pendingOf(cmd.Context(), c, a)
	if err != nil {
		return err
	}
	for _, p := range all {
		oldest := time.Duration(p.Oldest * float64(time.Second)).Round(time.Second)
		if most := a.PendingAge(p.Consumer); most > 0 && oldest > most {
			fmt.Fprintf(c.Err, "consumer %s: the oldest message has waited for %v, longer than its pending_age, %v\n", p.Consumer, oldest, most)
		}
	}
	if c.JSON {
		return c.WriteJSON(struct {
			Consumers []pendingCounts `json:"consumers"`
		}{all})
	}
	span := func(title string, of func(pendingCounts) float64) output.Column[pendingCounts] {
		return output.Text(title, func(p pendingCounts) string {
			return time.Duration(of(p) * float64(time.Second)).Round(time.Second).String()
		})
	}
	return command.PrintTable(c, l, all, output.Fixed(
		output.Text("STORE", func(p pendingCounts) string { return p.Store }).IfVaried(),
		output.Flexible("CONSUMER", func(p pendingCounts) string { return p.Consumer }),
		output.Number("DUE NOW", func(p pendingCounts) int64 { return p.Due }), output.Number("RUNNING", func(p pendingCounts) int64 { return p.InProgress }),
		output.Number("DUE LATER", func(p pendingCounts) int64 { return p.Later }),
		output.Number("BLOCKED", func(p pendingCounts) int64 { return p.Blocked }).If(slices.ContainsFunc(all, func(p pendingCounts) bool { return p.Blocked > 0 })),
		span("NEXT IN", func(p pendingCounts) float64 { return p.Next }), span("OLDEST", func(p pendingCounts) float64 { return p.Oldest }),
	))
}

// pendingOf counts the unfinished messages of the consumer in --consumer, or of all consumers of the policy.
func pendingOf(ctx context.Context, c *command.CLI, a *assembly.Assembly) ([]pendingCounts, error) {
	all := []pendingCounts{}
	for _, s := range a.Stores {
		for _, name := range consumersOf(c, a, s.Name()) {
			name, err := s.KeptAs(ctx, name)
			if err != nil {
				return nil, command.Failed(err)
			}
			p, err := s.Pending(ctx, name)
			if err != nil {
				return nil, command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
			}
			all = append(all, pendingCounts{Store: s.Name(), Consumer: name, Due: p.Due, InProgress: p.InProgress, Later: p.Later, Blocked: p.Blocked, Next: p.Next.Seconds(), Oldest: p.Oldest.Seconds()})
		}
	}
	return all, nil
}

// consumersOf returns the consumer in --consumer, or all consumers of the policy that use the store.
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
