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
		Long: `List consumers with their pauses and limits, and whether they run. The column
RUN comes from the run at the address of the policy key listen, or else from the
progress that a process recorded in the store; processes record progress once a
minute if retention is limited. Otherwise RUN is unknown.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			var wanted []string
			if c.Consumer != "" {
				wanted = []string{c.Consumer}
			}
			list := consumersListed{CLI: c, listing: l, now: time.Now}
			list.runningConsumers, list.unknown = whatRuns(cmd.Context(), c, store)
			return withControlTargets(cmd.Context(), c, wanted, store, true, func(all []controlTarget) error {
				return list.print(cmd.Context(), all)
			})
		},
	}
	l.Add(c, cmd, 0, "consumers")
	return withControlStore(c, cmd, &store)
}

type consumerView struct {
	operate.ControlView
	// Run is "ready", "not ready" or "not in run", as the process at the policy's address (key listen) reports;
	// empty if unknown.
	Run string `json:"run,omitempty"`
	// Progress is the time at which a process of the consumer last recorded progress in the store; nil if
	// processes record none.
	Progress     *time.Time `json:"progress_at,omitempty"`
	progressText string
}

// noListen explains why the running consumers are unknown if the policy has no address at which a process can
// be asked.
const noListen = "the policy has no key listen, so no run can be asked"

// noPolicy explains why the running consumers are unknown if the user named a database instead of a policy.
const noPolicy = "a database does not show which processes run; name a policy with the key listen"

// whatRuns returns the consumers of the process that serves the policy's address. If no process can be asked,
// whatRuns returns nil and the reason.
func whatRuns(ctx context.Context, c *command.CLI, store string) (runs map[string]metrics.ConsumerHealth, unknown string) {
	p, _, err := c.LoadFor(store)
	switch {
	case err != nil: // the caller that needs the policy reports the error
		return nil, ""
	case p.Bare:
		return nil, noPolicy
	case p.Listen.Address == "":
		return nil, noListen
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	h, err := fetchHealth(ctx, p.Listen, metrics.PathReady)
	if err != nil {
		return nil, err.Error()
	}
	return h.Consumers, ""
}

// consumersListed prints consumers, and whether each consumer runs.
type consumersListed struct {
	*command.CLI
	listing *command.Listing
	// runningConsumers has the consumers of the process that was asked. If no process answered, runs is nil, and
	// the field unknown has the reason.
	runningConsumers map[string]metrics.ConsumerHealth
	unknown          string
	now              func() time.Time
}

// print prints the controls of each consumer, and whether the consumer runs.
func (l *consumersListed) print(ctx context.Context, all []controlTarget) error {
	views, unknown := []consumerView{}, false
	for _, one := range all {
		if l.listing.Full(len(views)) {
			break
		}
		v, err := operate.ControlOf(ctx, one.store.Name(), one.store, one.name)
		if err != nil {
			return command.Failed(err)
		}
		view := consumerView{ControlView: v}
		switch h, known := l.runningConsumers[one.name]; {
		case known:
			view.Run = map[bool]string{true: "ready", false: "not ready"}[h.OK]
		case l.runningConsumers != nil:
			view.Run = notInRun
		default:
			view.Progress = progressOf(ctx, one)
			unknown = unknown || view.Progress == nil
		}
		if view.Progress != nil {
			view.progressText = "seen " + age(l.now(), *view.Progress) + " ago"
		}
		views = append(views, view)
	}
	err := command.PrintList(l.CLI, l.listing, "consumers", "consumer", views, len(all), controlColumns)
	if unknown && l.unknown != "" {
		l.Remark("RUN is unknown: %s", legible.Printable(l.unknown))
	}
	return err
}

// notInRun is the state of a consumer that the process at the policy's address does not run.
const notInRun = "not in run"

// progressOf returns the time at which a process of the consumer last recorded progress; nil if the time is
// unknown.
func progressOf(ctx context.Context, one controlTarget) *time.Time {
	kept, err := one.store.KeptAs(ctx, one.name)
	if err != nil {
		return nil
	}
	all, err := one.store.Retentions(ctx, kept)
	if err != nil || len(all) != 1 || all[0].Keep == 0 || all[0].Progress.Unix() <= 0 {
		return nil
	}
	at := all[0].Progress.UTC()
	return &at
}

func controlColumns(views []consumerView, _ bool) []output.Column[consumerView] {
	type view = consumerView
	storeOf := func(v view) string { return v.Store }
	limited := slices.ContainsFunc(views, func(v view) bool { return v.PerSecond > 0 })
	return []output.Column[view]{
		output.Text("STORE", storeOf).IfVaried(),
		output.Flexible("CONSUMER", func(v view) string { return legible.Printable(v.Consumer) }),
		output.Text("STATE", func(v view) string { return controlState(v.ControlView) }),
		output.Text("RUN", func(v view) string { return cmp.Or(v.Run, v.progressText, "unknown") }),
		output.Text("PER SECOND", func(v view) string { return controlLimit(v.ControlView) }).If(limited),
		output.Text("SINCE", func(v view) string {
			if o := pauseOrder(v.ControlView); o != nil {
				return output.Moment(o.At)
			}
			return "-"
		}),
		output.Flexible("BY", func(v view) string {
			if o := pauseOrder(v.ControlView); o != nil {
				return legible.Printable(o.By)
			}
			return "-"
		}),
		output.Flexible("WHY", func(v view) string {
			if o := pauseOrder(v.ControlView); o != nil {
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

// pauseOrder returns the command that paused the consumer. If the consumer is not paused, pauseOrder returns the
// command that set the limit, or nil.
func pauseOrder(v operate.ControlView) *operate.OrderView {
	switch {
	case v.Paused:
		return v.Pause
	case v.PerSecond > 0:
		return v.Limit
	}
	return nil
}
