package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// rowList lists rows, in these states where nobody says.
func rowList(c *command.CLI, short string, standard ...store.RowState) *cobra.Command {
	f, l := &filter{}, &command.Listing{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: short,
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return look(c, cmd, f, l, list)
		},
	}
	l.Add(c, cmd, 0, "rows")
	return c.WithConfig(f.add(c, cmd, standard...))
}

// look opens the chosen stores while show shows what stands there.
func look(c *command.CLI, cmd *cobra.Command, f *filter, l *command.Listing, show func(context.Context, *command.CLI, *assembly.Assembly, store.RowFilter, *command.Listing) error) error {
	if err := l.Check(c, cmd); err != nil {
		return err
	}
	chosen, err := f.rows(c, time.Now)
	if err != nil {
		return err
	}
	a, err := c.OpenBoxes(cmd.Context(), f.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	return show(cmd.Context(), c, a, chosen, l)
}

// list prints the rows, and on stderr how many there are.
func list(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, l *command.Listing) error {
	var err error
	if f.Consumer, err = c.ActiveName(ctx, a, f.Consumer); err != nil {
		return err
	}
	var views []operate.View
	count := 0
	for _, s := range a.Stores {
		box := command.BoxOf(s)
		for row, err := range box.Rows(ctx, f) {
			if err != nil {
				return command.Failed(err)
			}
			if count++; !l.Full(len(views)) {
				views = append(views, operate.NewView(box.Store, row))
			}
		}
	}
	if err := command.PrintList(c, l, "rows", "row", views, count, rowColumns); err != nil || c.JSON {
		return err
	}
	if count == 0 {
		if err := pointAtReasons(ctx, c, a, f); err != nil {
			return err
		}
	}
	return pointAtLetters(ctx, c, a, f)
}

// mostCounted is how far rows are counted that are not shown.
const mostCounted = 1000

// pointAtLetters says that the dead letters are not among the parked: whoever
// looks for what was set aside would miss them.
func pointAtLetters(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter) error {
	if !slices.Equal(f.States, []store.RowState{store.StateParked}) {
		return nil
	}
	f.States = []store.RowState{store.StateDeadLettered}
	n := 0
	for _, s := range a.Stores {
		for _, err := range command.BoxOf(s).Rows(ctx, f) {
			if err != nil {
				return command.Failed(err)
			}
			if n++; n > mostCounted {
				break
			}
		}
	}
	switch {
	case n > mostCounted:
		fmt.Fprintf(c.Err, "more than %d are DEAD_LETTERED: --state DEAD_LETTERED lists them\n", mostCounted)
	case n > 0:
		fmt.Fprintf(c.Err, "%d DEAD_LETTERED, not listed here: --state DEAD_LETTERED\n", n)
	}
	return nil
}

// rowColumns are those of the list of rows. What all rows have in common, and
// what few need, is left out where the width is limited.
func rowColumns(views []operate.View, wide bool) []output.Column[operate.View] {
	versioned := slices.ContainsFunc(views, func(v operate.View) bool { return v.Version > 0 })
	return []output.Column[operate.View]{
		output.Number("NUMBER", func(v operate.View) int64 { return v.Number }),
		output.Text("STORE", storeOf).IfVaried(),
		output.Text("STATE", stateOf).If(wide).OrVaried(),
		output.Flexible("REASON", func(v operate.View) string { return string(v.Reason) }),
		output.Flexible("CONSUMER", consumerOf).If(wide).OrVaried(),
		output.Flexible("ID", IDOf),
		output.Flexible("STREAM", operate.View.StreamName).If(versioned),
		output.Text("VERSION", versionOf).If(versioned),
		output.Flexible("KEY", keyOf).If(slices.ContainsFunc(views, func(v operate.View) bool { return v.Lined && v.KeyName() != "" })),
		output.Number("ATTEMPTS", func(v operate.View) int { return v.Attempts }).If(wide),
		output.Number("REPEATED", func(v operate.View) int { return v.Repeated }).If(wide),
		output.Text("DUE", dueOf).If(slices.ContainsFunc(views, operate.View.Waits)),
		output.Text("RECEIVED", func(v operate.View) string { return received(v, wide) }),
		output.Flexible("LAST ERROR", func(v operate.View) string { return beyond(v.Reason, v.Last) }),
	}
}

// beyond is what an error says beyond the reason beside it, with which it may begin.
func beyond(reason semel.Reason, text string) string {
	if rest, begins := strings.CutPrefix(text, string(reason)); begins && reason != "" {
		if said, more := strings.CutPrefix(rest, ": "); more || rest == "" {
			return said
		}
	}
	return text
}

// received is without seconds where the width is limited.
func received(v operate.View, wide bool) string {
	if wide || v.Received.IsZero() {
		return output.Moment(v.Received)
	}
	return v.Received.UTC().Format("2006-01-02 15:04Z")
}

// dueOf is in how long a row is due, or until when it is claimed.
func dueOf(v operate.View) string {
	switch {
	case v.Claimed != nil:
		return "claimed until " + v.Claimed.UTC().Format(time.TimeOnly) + "Z"
	case v.Due != nil:
		return output.Moment(*v.Due)
	}
	return "-"
}

func storeOf(v operate.View) string { return v.Store }

func stateOf(v operate.View) string { return string(v.State) }

func consumerOf(v operate.View) string { return v.Consumer }

// states are the words of --state: those that a row has in this release.
func states() []string {
	return append(words(command.WaitingStates()), string(store.StateParked), string(store.StateDeadLettered), string(store.StateDiscarded), string(store.StateCompleted), anyState)
}

// stateWords are the states for a text.
func stateWords() string { return strings.Join(states(), ", ") }

// groupsShown is how many groups a summary shows unless --limit says otherwise.
const groupsShown = 40

func parkedSummary(c *command.CLI) *cobra.Command {
	f, l := &filter{}, &command.Listing{}
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Count parked and dead-lettered messages by reason and error",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return look(c, cmd, f, l, summarize)
		},
	}
	l.Add(c, cmd, groupsShown, "groups")
	return c.WithConfig(f.add(c, cmd, store.StateParked, store.StateDeadLettered))
}

func summarize(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, l *command.Listing) error {
	rows, err := summarizeBy(ctx, c, a, f, l, "row", operate.Box.Groups)
	if err == nil && rows == 0 && !c.JSON {
		return pointAtReasons(ctx, c, a, f)
	}
	return err
}

// summarizeBy prints how many rows there are by group, each called so, and returns how many in
// all.
func summarizeBy(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, l *command.Listing, what string,
	by func(operate.Box, context.Context, store.RowFilter) ([]operate.Group, error)) (rows int, err error) {
	if f.Consumer, err = c.ActiveName(ctx, a, f.Consumer); err != nil {
		return 0, err
	}
	groups := []operate.Group{}
	for _, s := range a.Stores {
		found, err := by(command.BoxOf(s), ctx, f)
		if err != nil {
			return 0, command.Failed(err)
		}
		groups = append(groups, found...)
	}
	operate.SortGroups(groups)
	for _, g := range groups {
		rows += g.Count
	}
	shown := groups
	if l.Limit > 0 {
		shown = groups[:min(l.Limit, len(groups))]
	}
	if c.JSON {
		return rows, c.WriteJSON(map[string]any{"groups": shown, "count": rows})
	}
	if err := command.PrintTable(c, l, shown, groupColumns); err != nil {
		return rows, err
	}
	fmt.Fprintf(c.Err, "%s, %s\n", output.Counted(rows, rows, what), output.Counted(len(shown), len(groups), "group"))
	return rows, nil
}

// groupColumns are those of the summary.
func groupColumns(groups []operate.Group, wide bool) []output.Column[operate.Group] {
	state := func(g operate.Group) string { return string(g.State) }
	consumer := func(g operate.Group) string { return g.Consumer }
	store := func(g operate.Group) string { return g.Store }
	named := slices.ContainsFunc(groups, func(g operate.Group) bool { return g.ID != "" })
	return []output.Column[operate.Group]{
		output.Text("GROUP", func(g operate.Group) string { return g.ID }).If(named),
		output.Text("COUNT", func(g operate.Group) string { return fmt.Sprintf("%5d", g.Count) }),
		output.Text("STORE", store).IfVaried(),
		output.Text("STATE", state).If(wide).OrVaried(),
		output.Flexible("REASON", func(g operate.Group) string { return string(g.Reason) }),
		output.Flexible("CONSUMER", consumer).If(wide).OrVaried(),
		output.Text("OLDEST", func(g operate.Group) string { return g.First.UTC().Format(time.DateOnly) }),
		output.Flexible("LAST ERROR", func(g operate.Group) string { return beyond(g.Reason, g.Error) }),
	}
}
