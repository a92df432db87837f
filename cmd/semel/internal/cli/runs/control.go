package runs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// noLimit is the argument of the command limit that removes the limit.
const noLimit = "off"

// obeyWithin is the time within which all processes obey a pause or a limit, or notice that an operator
// removed the pause or limit. Each process reads pauses and limits every 2 seconds, and looks at the inbox
// every 250 ms.
const obeyWithin = "3 seconds"

func pauseCommand(c *command.CLI) *cobra.Command {
	w := &operate.Wish{Verb: operate.Pause}
	cmd := &cobra.Command{
		Use:   "pause NAME... --because TEXT",
		Short: "Pause consumers",
		Long: `Pause consumers in all their processes: no new messages are fetched, and
messages in flight are finished. Continue with semel consumers resume.

The store keeps the pause, so that processes that start later and programs in
Go obey it too. Running processes obey within ` + obeyWithin + `. Waiting rows of the
inbox wait as well.`,
	}
	return controlFlags(c, cmd, w, 0)
}

func resumeCommand(c *command.CLI) *cobra.Command {
	w := &operate.Wish{Verb: operate.Resume}
	cmd := &cobra.Command{
		Use:   "resume NAME... --because TEXT",
		Short: "Resume paused consumers",
		Long: `Resume paused consumers where they stopped. Their processes continue within
` + obeyWithin + `. Resume does not remove limits; to remove one, run
semel consumers limit NAME off.`,
	}
	return controlFlags(c, cmd, w, 0)
}

func limitCommand(c *command.CLI) *cobra.Command {
	w := &operate.Wish{Verb: operate.Limit}
	cmd := &cobra.Command{
		Use:   "limit NAME... N|off --because TEXT",
		Short: "Limit messages a second in each process",
		Long: `Let each process of the consumers take at most N messages a second; off removes
the limit. Three processes together take three times as many.

The limit counts messages of the source and waiting rows of the inbox together.
Messages in flight are not slowed down. The store keeps the limit, and running
processes obey within ` + obeyWithin + `. Programs with their own loop (Process) are not
limited.`,
	}
	return controlFlags(c, cmd, w, 1)
}

// mostPerSecond is the highest possible limit.
const mostPerSecond = 1_000_000

// perSecond parses the argument of the command limit. The result 0 means no limit.
func perSecond(arg string) (int, error) {
	if arg == noLimit {
		return 0, nil
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > mostPerSecond {
		return 0, command.UsageError("%q is no limit; give a whole number from 1 to %d, %s for no limit, or use semel consumers pause for none at all", arg, mostPerSecond, noLimit)
	}
	return n, nil
}

// controlFlags adds the flags of the commands pause, resume and limit. The parameter others is the number of
// arguments after the names of consumers: 1 for limit, 0 for the other commands.
func controlFlags(c *command.CLI, cmd *cobra.Command, w *operate.Wish, others int) *cobra.Command {
	var store string
	var everyone bool
	cmd.ValidArgsFunction = c.ConsumerWords
	cmd.Args = func(_ *cobra.Command, args []string) (err error) {
		if len(args) < others {
			return command.UsageError("give how many messages a second each process may take, or %s for no limit", noLimit)
		}
		names := args[:len(args)-others]
		switch {
		case slices.Contains(names, ""):
			return command.UsageError("a name is empty; name the consumers")
		case everyone && len(names) > 0:
			return command.UsageError("give names of consumers or --all, not both")
		case !everyone && len(names) == 0:
			return command.UsageError("name the consumers, or use --all for all of the policy; semel consumers ls lists them")
		}
		if others > 0 {
			w.PerSecond, err = perSecond(args[len(args)-1])
		}
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if strings.TrimSpace(w.Why) == "" && !w.DryRun {
			return command.UsageError("--because is missing: say why, it is recorded, and who looks at the consumer reads it")
		}
		if w.Who, err = command.OperatorName(w.Who); err != nil {
			return err
		}
		if everyone && policy.IsPlace(store) {
			return command.UsageError("--all means the consumers of the policy: without a policy, name them; semel consumers ls lists them")
		}
		return withControlTargets(cmd.Context(), c, args[:len(args)-others], store, false, func(all []controlTarget) error {
			return wish(cmd.Context(), c, *w, all)
		})
	}
	cmd.Flags().BoolVar(&everyone, "all", false, "all consumers of the policy")
	command.DryRunFlag(cmd, &w.DryRun)
	command.RecordFlags(cmd, &w.Who, &w.Why)
	command.StoreFlag(cmd, &store)
	command.RefuseEmpty(cmd, "store")
	return c.WithConfig(cmd)
}

// withControlStore adds the flags that choose the stores of the consumers.
func withControlStore(c *command.CLI, cmd *cobra.Command, store *string) *cobra.Command {
	command.StoreFlag(cmd, store)
	command.RefuseEmpty(cmd, "store", "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

// controlTarget is a consumer together with its store.
type controlTarget struct {
	store *assembly.Store
	name  string
}

// withControlTargets calls the function work with the named consumers. Without names, withControlTargets calls the
// function work with all consumers of the policy. With strangers set, withControlTargets adds consumers that the
// policy does not have but a store knows.
func withControlTargets(ctx context.Context, c *command.CLI, wanted []string, store string, strangers bool, work func([]controlTarget) error) error {
	p, store, err := c.LoadFor(store)
	if err != nil {
		return err
	}
	if len(wanted) == 1 && store == "" && p.Consumer(wanted[0]) != nil {
		store = p.Consumer(wanted[0]).Store
	}
	a, err := c.OpenChecked(ctx, p, store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	var all []controlTarget
	var known []string
	for _, s := range a.Stores {
		names, err := s.Consumers(ctx)
		if err != nil {
			return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		if !strangers && len(wanted) == 0 {
			names = nil
		}
		names = command.KnownConsumers(a.Policy(), s.Name(), names)
		known = append(known, names...)
		for _, name := range names {
			if len(wanted) == 0 || slices.Contains(wanted, name) {
				all = append(all, controlTarget{s, name})
			}
		}
	}
	for _, name := range wanted {
		found := 0
		for _, one := range all {
			if one.name == name {
				found++
			}
		}
		switch {
		case found == 0:
			return c.NoneOfThisName("consumer", name, known)
		case found > 1:
			return command.UsageError("%d stores know a consumer %q; name one with --store", found, name)
		}
	}
	return work(all)
}

// wish executes a command for the consumers and prints the result for each consumer.
func wish(ctx context.Context, c *command.CLI, w operate.Wish, all []controlTarget) error {
	done := []operate.Controlled{}
	bad, changed := 0, false
	for _, one := range all {
		v, err := operate.ControlOf(ctx, one.store.Name(), one.store, one.name)
		if err != nil {
			return command.Failed(err)
		}
		d := w.Carry(ctx, one.store, v)
		if !d.OK() {
			bad++
		}
		changed = changed || d.Result == operate.Done
		if done = append(done, d); !c.JSON {
			fmt.Fprintln(c.Out, wishLine(w, d))
		}
	}
	if c.JSON {
		document := struct {
			Verb      admin.Verb           `json:"verb"`
			PerSecond int                  `json:"per_second"`
			DryRun    bool                 `json:"dry_run"`
			Results   []operate.Controlled `json:"results"`
			Failed    int                  `json:"failed"`
		}{w.Verb, w.PerSecond, w.DryRun, done, bad}
		if err := c.WriteJSON(document); err != nil {
			return err
		}
	}
	if changed {
		fmt.Fprintln(c.Err, "running processes obey within "+obeyWithin+";\nsemel consumers ls shows what is wanted")
	}
	if bad > 0 {
		return command.Failed(fmt.Errorf("%s: %d of %d consumers were not changed", w.Verb, bad, len(done)))
	}
	return nil
}

// wishLine returns the printed result of a command for one consumer.
func wishLine(w operate.Wish, d operate.Controlled) string {
	line := legible.Printable(d.Consumer) + ": "
	switch d.Result {
	case operate.Unchanged:
		return line + unchangedText(w)
	case operate.Would:
		line += "would be "
	case operate.Failed:
		return line + "failed: " + legible.Printable(d.Error)
	}
	return line + newStateText(w)
}

// unchangedText returns the text for a consumer that had nothing to remove: no limit, or no pause.
func unchangedText(w operate.Wish) string {
	if w.Verb == operate.Limit {
		return "has no limit"
	}
	return "is not paused"
}

// newStateText returns the text for the new state of a consumer after the command.
func newStateText(w operate.Wish) string {
	switch {
	case w.Verb == operate.Pause:
		return "paused"
	case w.Verb == operate.Resume:
		return "resumed"
	case w.PerSecond == 0:
		return "without a limit"
	}
	return fmt.Sprintf("limited to %d messages a second in each process", w.PerSecond)
}
