package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/contract"
	"github.com/spf13/cobra"
)

// groupsShown is how many groups a summary shows unless --limit says otherwise.
const groupsShown = 40

func parkedSummary(c *common) *cobra.Command {
	f, l := &filter{}, &listing{}
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Count what was set aside and is not done, by reason and error",
		Args:  nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.look(cmd, f, l, c.summarize)
		},
	}
	l.add(c, cmd, groupsShown, "groups")
	return c.withConfig(f.add(c, cmd, "reason", contract.StateParked, contract.StateDeadLettered))
}

func (c *common) summarize(ctx context.Context, a *assembly.Assembly, f contract.RowFilter, l *listing) error {
	if err := c.refuseStranger(ctx, a, f.Consumer); err != nil {
		return err
	}
	groups, rows := []operate.Group{}, 0
	for _, s := range a.Stores {
		found, err := boxOf(s).Groups(ctx, f)
		if err != nil {
			return failed(err)
		}
		groups = append(groups, found...)
	}
	operate.SortGroups(groups)
	for _, g := range groups {
		rows += g.Count
	}
	shown := groups
	if l.limit > 0 {
		shown = groups[:min(l.limit, len(groups))]
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{"groups": shown, "count": rows})
	}
	if err := c.printGroups(shown, l); err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "%s, %s\n", counted(rows, rows, "row"), counted(len(shown), len(groups), "group"))
	if rows == 0 {
		return c.pointAtReasons(ctx, a, f, "reason")
	}
	return nil
}

func (c *common) printGroups(groups []operate.Group, l *listing) error {
	columns := l.columns(c)
	return failed(show(c.Out, groups, groupColumns(groups, columns == terminal.Unlimited), columns))
}

// groupColumns are those of the summary.
func groupColumns(groups []operate.Group, wide bool) []column[operate.Group] {
	state := func(g operate.Group) string { return string(g.State) }
	consumer := func(g operate.Group) string { return g.Consumer }
	store := func(g operate.Group) string { return g.Store }
	return []column[operate.Group]{
		{terminal.Column{Title: "COUNT"}, true, func(g operate.Group) string { return fmt.Sprintf("%5d", g.Count) }},
		{terminal.Column{Title: "STORE"}, differ(groups, store), store},
		{terminal.Column{Title: "STATE"}, wide || differ(groups, state), state},
		{terminal.Column{Title: "REASON", Flexible: true}, true, func(g operate.Group) string { return string(g.Reason) }},
		{terminal.Column{Title: "CONSUMER", Flexible: true}, wide || differ(groups, consumer), consumer},
		{terminal.Column{Title: "OLDEST"}, true, func(g operate.Group) string { return g.First.UTC().Format(time.DateOnly) }},
		{terminal.Column{Title: "LAST ERROR", Flexible: true}, true, func(g operate.Group) string { return g.Error }},
	}
}
