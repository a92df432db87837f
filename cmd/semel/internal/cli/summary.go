package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/store"
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
	return c.withConfig(f.add(c, cmd, store.StateParked, store.StateDeadLettered))
}

func (c *common) summarize(ctx context.Context, a *assembly.Assembly, f store.RowFilter, l *listing) error {
	rows, err := c.summarizeBy(ctx, a, f, l, "row", operate.Box.Groups)
	if err == nil && rows == 0 && !c.json {
		return c.pointAtReasons(ctx, a, f)
	}
	return err
}

// summarizeBy prints how many rows there are by group, each called so, and returns how many in
// all.
func (c *common) summarizeBy(ctx context.Context, a *assembly.Assembly, f store.RowFilter, l *listing, what string,
	by func(operate.Box, context.Context, store.RowFilter) ([]operate.Group, error)) (rows int, err error) {
	if f.Consumer, err = c.inActive(ctx, a, f.Consumer); err != nil {
		return 0, err
	}
	groups := []operate.Group{}
	for _, s := range a.Stores {
		found, err := by(boxOf(s), ctx, f)
		if err != nil {
			return 0, failed(err)
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
		return rows, writeJSON(c.Out, map[string]any{"groups": shown, "count": rows})
	}
	if err := c.printGroups(shown, l); err != nil {
		return rows, err
	}
	fmt.Fprintf(c.Err, "%s, %s\n", counted(rows, rows, what), counted(len(shown), len(groups), "group"))
	return rows, nil
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
	named := slices.ContainsFunc(groups, func(g operate.Group) bool { return g.ID != "" })
	return []column[operate.Group]{
		{terminal.Column{Title: "GROUP"}, named, func(g operate.Group) string { return g.ID }},
		{terminal.Column{Title: "COUNT"}, true, func(g operate.Group) string { return fmt.Sprintf("%5d", g.Count) }},
		{terminal.Column{Title: "STORE"}, differ(groups, store), store},
		{terminal.Column{Title: "STATE"}, wide || differ(groups, state), state},
		{terminal.Column{Title: "REASON", Flexible: true}, true, func(g operate.Group) string { return string(g.Reason) }},
		{terminal.Column{Title: "CONSUMER", Flexible: true}, wide || differ(groups, consumer), consumer},
		{terminal.Column{Title: "OLDEST"}, true, func(g operate.Group) string { return g.First.UTC().Format(time.DateOnly) }},
		{terminal.Column{Title: "LAST ERROR", Flexible: true}, true, func(g operate.Group) string { return beyond(g.Reason, g.Error) }},
	}
}
