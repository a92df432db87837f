package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

func consumersList(c *command.CLI) *cobra.Command {
	l := &command.Listing{}
	var store string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List consumers with pauses and limits",
		Long: `List consumers with their pauses and limits, and whether the run at the address
of the policy key listen runs them. Other processes are not known.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			var wanted []string
			if c.Consumer != "" {
				wanted = []string{c.Consumer}
			}
			runs := whatRuns(cmd.Context(), c, store)
			return withControlled(cmd.Context(), c, wanted, store, true, func(all []controlled) error {
				return listControls(cmd.Context(), c, all, runs, l)
			})
		},
	}
	l.Add(c, cmd, 0, "consumers")
	return withControlStore(c, cmd, &store)
}

// consumerView shows a consumer and its controls.
type consumerView struct {
	operate.ControlView
	// Run is "ready" or "not ready", as the running process reports. Run is empty if no process reports the
	// consumer.
	Run string `json:"run,omitempty"`
}

// whatRuns returns the health of the consumers that a running process reports at the policy's address.
// whatRuns returns nil if no process responds.
func whatRuns(ctx context.Context, c *command.CLI, store string) map[string]metrics.ConsumerHealth {
	p, _, err := c.LoadFor(store)
	if err != nil || p.Listen.Address == "" { // another command reports the faults of a policy
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	h, err := ask(ctx, p.Listen, metrics.PathReady)
	if err != nil {
		fmt.Fprintf(c.Err, "which consumers run is not known: %v\n", err)
		return nil
	}
	return h.Consumers
}

// listControls prints the controls of each consumer, and whether a process runs the consumer.
func listControls(ctx context.Context, c *command.CLI, all []controlled, runs map[string]metrics.ConsumerHealth, l *command.Listing) error {
	views := []consumerView{}
	for _, one := range all {
		if l.Full(len(views)) {
			break
		}
		v, err := operate.ControlOf(ctx, one.store.Name(), one.store, one.name)
		if err != nil {
			return command.Failed(err)
		}
		view := consumerView{ControlView: v}
		if h, known := runs[one.name]; known {
			view.Run = map[bool]string{true: "ready", false: "not ready"}[h.OK]
		}
		views = append(views, view)
	}
	return command.PrintList(c, l, "consumers", "consumer", views, len(all), controlColumns)
}

func controlColumns(views []consumerView, _ bool) []output.Column[consumerView] {
	type view = consumerView
	storeOf := func(v view) string { return v.Store }
	limited := slices.ContainsFunc(views, func(v view) bool { return v.PerSecond > 0 })
	runs := slices.ContainsFunc(views, func(v view) bool { return v.Run != "" })
	return []output.Column[view]{
		output.Text("STORE", storeOf).IfVaried(),
		output.Flexible("CONSUMER", func(v view) string { return legible.Printable(v.Consumer) }),
		output.Text("STATE", func(v view) string { return controlState(v.ControlView) }),
		output.Text("RUN", func(v view) string { return cmp.Or(v.Run, "-") }).If(runs),
		output.Text("PER SECOND", func(v view) string { return controlLimit(v.ControlView) }).If(limited),
		output.Text("SINCE", func(v view) string {
			if o := standing(v.ControlView); o != nil {
				return output.Moment(o.At)
			}
			return "-"
		}),
		output.Flexible("BY", func(v view) string {
			if o := standing(v.ControlView); o != nil {
				return legible.Printable(o.By)
			}
			return "-"
		}),
		output.Flexible("WHY", func(v view) string {
			if o := standing(v.ControlView); o != nil {
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

// standing returns the command that paused the consumer. If the consumer is not paused, standing returns the
// command that set the limit, or nil.
func standing(v operate.ControlView) *operate.OrderView {
	switch {
	case v.Paused:
		return v.Pause
	case v.PerSecond > 0:
		return v.Limit
	}
	return nil
}
