package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

func controlsCommand(c *command.CLI) *cobra.Command {
	l := &command.Listing{}
	var store string
	cmd := &cobra.Command{
		Use:   "controls",
		Short: "List consumers with their pauses and limits",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return withControlled(cmd.Context(), c, store, true, func(all []controlled) error {
				return listControls(cmd.Context(), c, all, l)
			})
		},
	}
	l.Add(c, cmd, 0, "consumers")
	return withControlStore(c, cmd, &store)
}

// listControls prints what is wanted of each consumer.
func listControls(ctx context.Context, c *command.CLI, all []controlled, l *command.Listing) error {
	views := []operate.ControlView{}
	for _, one := range all {
		if l.Full(len(views)) {
			break
		}
		v, err := operate.ControlOf(ctx, one.store.Name(), one.store, one.name)
		if err != nil {
			return command.Failed(err)
		}
		views = append(views, v)
	}
	return command.PrintList(c, l, "consumers", "consumer", views, len(all), controlColumns)
}

func controlColumns(views []operate.ControlView, _ bool) []output.Column[operate.ControlView] {
	type view = operate.ControlView
	storeOf := func(v view) string { return v.Store }
	limited := slices.ContainsFunc(views, func(v view) bool { return v.PerSecond > 0 })
	return []output.Column[view]{
		output.Text("STORE", storeOf).IfVaried(),
		output.Flexible("CONSUMER", func(v view) string { return legible.Printable(v.Consumer) }),
		output.Text("STATE", controlState),
		output.Text("PER SECOND", controlLimit).If(limited),
		output.Text("SINCE", func(v view) string {
			if o := standing(v); o != nil {
				return output.Moment(o.At)
			}
			return "-"
		}),
		output.Flexible("BY", func(v view) string {
			if o := standing(v); o != nil {
				return legible.Printable(o.By)
			}
			return "-"
		}),
		output.Flexible("WHY", func(v view) string {
			if o := standing(v); o != nil {
				return legible.Printable(o.Why)
			}
			return "-"
		}),
	}
}

func controlState(v operate.ControlView) string {
	switch {
	case v.Paused:
		return "paused"
	case v.PerSecond > 0:
		return "limited"
	}
	return "-"
}

func controlLimit(v operate.ControlView) string {
	if v.PerSecond == 0 {
		return "-"
	}
	return fmt.Sprint(v.PerSecond)
}

// standing is the order that stands: of the pause, or else of the limit; nil if there is
// none.
func standing(v operate.ControlView) *operate.OrderView {
	switch {
	case v.Paused:
		return v.Pause
	case v.PerSecond > 0:
		return v.Limit
	}
	return nil
}
