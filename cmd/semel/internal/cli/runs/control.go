package runs

import (
	"context"
	"fmt"
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

// noLimit is the word for no limit.
const noLimit = "off"

func pauseCommand(c *command.CLI) *cobra.Command {
	w := &operate.Wish{Verb: operate.Pause}
	cmd := &cobra.Command{
		Use:   "pause --because TEXT",
		Short: "Pause consumers",
		Long: `Pause lets consumers take nothing more, neither from their sources nor from
what waits in the store. What they have in memory goes on to its end and is
settled, their processes run on, and nothing is lost: they go on where they were
with semel resume. It is kept in the store, so that all processes of a consumer
obey, those that start later and programs in Go, too, within 2 seconds.

Without --consumer it is all consumers of the policy.`,
		Args: command.NoArgs,
	}
	return controlFlags(c, cmd, w)
}

func resumeCommand(c *command.CLI) *cobra.Command {
	w := &operate.Wish{Verb: operate.Resume}
	cmd := &cobra.Command{
		Use:   "resume --because TEXT",
		Short: "Resume consumers",
		Long: `Resume lets consumers that were paused go on where they were. Their processes
hear it within 3 seconds. A limit stays: semel limit off lifts it.

Without --consumer it is all consumers of the policy.`,
		Args: command.NoArgs,
	}
	return controlFlags(c, cmd, w)
}

func limitCommand(c *command.CLI) *cobra.Command {
	w := &operate.Wish{Verb: operate.Limit}
	cmd := &cobra.Command{
		Use:   "limit MESSAGES|off --because TEXT",
		Short: "Limit the rate of each process",
		Long: `Limit lets each process of the consumers take so many messages a second, from
its source and from what waits in the store together: with three processes it
is three times as many. What was taken before is not slowed down. It is kept in
the store, and heard within 2 seconds; off lifts it. A program that brings its
own loop (Process) is not limited.

Without --consumer it is all consumers of the policy.`,
		ValidArgsFunction: func(_ *cobra.Command, words []string, _ string) (all []string, _ cobra.ShellCompDirective) {
			if len(words) == 0 {
				all = []string{noLimit}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, args []string) (err error) {
			w.PerSecond, err = perSecond(args)
			return err
		},
	}
	return controlFlags(c, cmd, w)
}

// mostPerSecond is the highest limit; more is none.
const mostPerSecond = 1_000_000

func perSecond(args []string) (int, error) {
	if len(args) != 1 {
		return 0, command.UsageError("give how many messages a second each process may take, or %s for no limit", noLimit)
	}
	if args[0] == noLimit {
		return 0, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > mostPerSecond {
		return 0, command.UsageError("%q is no limit; give a whole number from 1 to %d, %s for no limit, or use semel pause for none at all", args[0], mostPerSecond, noLimit)
	}
	return n, nil
}

// controlFlags adds what the acts on consumers share.
func controlFlags(c *command.CLI, cmd *cobra.Command, w *operate.Wish) *cobra.Command {
	var store string
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if strings.TrimSpace(w.Why) == "" && !w.DryRun {
			return command.UsageError("--because is missing: say why, it is recorded, and who looks at the consumer reads it")
		}
		if w.Who, err = command.OperatorName(w.Who); err != nil {
			return err
		}
		if c.Consumer == "" && policy.IsPlace(store) {
			return command.UsageError("--consumer is missing: without a policy, name the consumer; semel controls lists them")
		}
		return withControlled(cmd.Context(), c, store, false, func(all []controlled) error {
			return wish(cmd.Context(), c, *w, all)
		})
	}
	cmd.Flags().BoolVar(&w.DryRun, "dry-run", false, "only show what would change")
	command.BecauseFlag(cmd, &w.Why, "why, for the record and for who looks at the consumer")
	command.WhoFlag(cmd, &w.Who)
	return withControlStore(c, cmd, &store)
}

// withControlStore adds the flags that say which consumers are meant.
func withControlStore(c *command.CLI, cmd *cobra.Command, store *string) *cobra.Command {
	command.StoreFlag(cmd, store)
	command.RefuseEmpty(cmd, "store", "consumer")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

// controlled is a consumer in its store.
type controlled struct {
	store *assembly.Store
	name  string
}

// withControlled has work done with the consumers that the flags choose: the one that
// is named, or all of the policy, and with strangers all that the stores know.
func withControlled(ctx context.Context, c *command.CLI, store string, strangers bool, work func([]controlled) error) error {
	p, store, err := c.LoadFor(store)
	if err != nil {
		return err
	}
	if consumer := p.Consumer(c.Consumer); store == "" && consumer != nil {
		store = consumer.Store
	}
	a, err := c.OpenChecked(ctx, p, store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	var all []controlled
	var known []string
	for _, s := range a.Stores {
		names, err := s.Consumers(ctx)
		if err != nil {
			return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		if !strangers && c.Consumer == "" {
			names = nil
		}
		names = command.KnownConsumers(a.Policy(), s.Name(), names)
		known = append(known, names...)
		for _, name := range names {
			if c.Consumer == "" || c.Consumer == name {
				all = append(all, controlled{s, name})
			}
		}
	}
	switch {
	case c.Consumer != "" && len(all) == 0:
		return c.NoneOfThisName("consumer", c.Consumer, known)
	case c.Consumer != "" && len(all) > 1:
		return command.UsageError("%d stores know a consumer %q; name one with --store", len(all), c.Consumer)
	}
	return work(all)
}

// wish carries out a wish and prints what became of it for each consumer.
func wish(ctx context.Context, c *command.CLI, w operate.Wish, all []controlled) error {
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
		fmt.Fprintln(c.Err, "the processes that run hear it within 3 seconds;\nsemel controls shows what is wanted")
	}
	if bad > 0 {
		return command.Failed(fmt.Errorf("%s: %d of %d consumers were not changed", w.Verb, bad, len(done)))
	}
	return nil
}

// wishLine says what became of a wish for one consumer.
func wishLine(w operate.Wish, d operate.Controlled) string {
	line := legible.Printable(d.Consumer) + ": "
	switch d.Result {
	case operate.Unchanged:
		return line + unchanged(w)
	case operate.Would:
		line += "would be "
	case operate.Failed:
		return line + "failed: " + legible.Printable(d.Error)
	}
	return line + wished(w)
}

// unchanged says that what is wanted is so already.
func unchanged(w operate.Wish) string {
	if w.Verb == operate.Limit {
		return "has no limit"
	}
	return "is not paused"
}

// wished says what a wish makes of a consumer.
func wished(w operate.Wish) string {
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
