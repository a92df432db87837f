package runs

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// setFlags has the flags of the commands reset and accept.
type setFlags struct {
	operate.Setting
	group          groupFlags
	verb, who, why string
}

func (s *setFlags) add(c *command.CLI, cmd *cobra.Command) *cobra.Command {
	everyone := false
	cmd.Args = oneConsumer(c)
	cmd.ValidArgsFunction = c.ConsumerWord
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everyone == (len(args) > 0) {
			return command.UsageError("name one consumer, or use --all for all of the policy; semel consumers positions plan shows them")
		}
		if err := command.CheckRecord(&s.who, s.why, s.DryRun); err != nil {
			return err
		}
		return withGroups(cmd.Context(), c, &s.group, func(a *assembly.Assembly, all []groupConsumer) error {
			return setPositions(cmd.Context(), c, a, all, s)
		})
	}
	cmd.Flags().BoolVar(&everyone, "all", false, "all consumers of the policy")
	command.DryRunFlag(cmd, &s.DryRun)
	command.RecordFlags(cmd, &s.who, &s.why)
	cmd.Flags().BoolVar(&s.Ahead, "ahead", false, "also offsets that a person or an older release set")
	s.group.add(cmd)
	return c.WithConfig(cmd)
}

func positionsReset(c *command.CLI) *cobra.Command {
	s := &setFlags{verb: "reset_positions"}
	cmd := s.add(c, &cobra.Command{
		Use:   "reset NAME --because TEXT",
		Short: "Reset groups to their restored stores",
		Long: `Set the offsets of a group back to the positions of its restored store. Stop all
processes of the consumer first: a group with members is refused.

Messages that the store lacks are delivered again; messages that have their
effect already are duplicates. A group is never set forward.`,
	})
	cmd.Flags().BoolVar(&s.LogStart, "log-start", false, "where records are gone, continue at the log start")
	return cmd
}

func positionsAccept(c *command.CLI) *cobra.Command {
	s := &setFlags{verb: "accept_positions"}
	s.Accept = true
	return s.add(c, &cobra.Command{
		Use:   "accept NAME --because TEXT",
		Short: "Accept the groups' offsets, and skip what the stores lack",
		Long: `Raise the positions of a store that is behind to the offsets of the group. The
messages in between are not read again.

Use accept if you brought the effects of these messages into the database in
another way, or want to skip these messages.`,
	})
}

// setPositions sets the positions of each consumer and prints the result for each partition.
func setPositions(ctx context.Context, c *command.CLI, a *assembly.Assembly, all []groupConsumer, s *setFlags) error {
	done := []operate.PositionView{}
	var stopped error
	left := 0 // partitions that a person must decide about
	for _, g := range all {
		for _, v := range g.partitions {
			if v.ByPerson() && !s.Ahead {
				left++
			}
		}
		planned := s.Plan(g.partitions)
		if stopped = setGroup(ctx, c, a, g, planned, s); stopped != nil {
			break
		}
		done = append(done, planned...)
		for _, v := range planned {
			if !c.JSON {
				fmt.Fprintln(c.Out, positionLine(v, s.Accept))
			}
		}
	}
	return concludePositions(c, done, left, stopped, s)
}

// setGroup writes an audit record and then sets the positions of one consumer group.
func setGroup(ctx context.Context, c *command.CLI, a *assembly.Assembly, g groupConsumer, planned []operate.PositionView, s *setFlags) error {
	what := operate.Record(planned)
	if s.DryRun || what == "" {
		return nil
	}
	act := store.Act{Verb: s.verb, Who: s.who, Why: fmt.Sprintf("consumer %s: %s: %s", g.consumer.Name, what, s.why)}
	if err := a.RecordOf(ctx, g.consumer, act); err != nil {
		return err
	}
	if err := s.Set(ctx, g.recovery, planned); err != nil {
		return fmt.Errorf("consumer %s: %w", g.consumer.Name, err)
	}
	return nil
}

func positionLine(v operate.PositionView, accept bool) string {
	from := v.GroupAt
	what := "group"
	if accept {
		from, what = v.StoreAt, "store"
	}
	line := fmt.Sprintf("%s %s: %s at %s to %s: %s", legible.Printable(v.Consumer), v.Name(), what, output.MaybeNumber(from), output.MaybeNumber(v.To), v.Result)
	if v.Error != "" {
		line += ": " + v.Error
	}
	return line
}

func concludePositions(c *command.CLI, done []operate.PositionView, left int, stopped error, s *setFlags) error {
	bad, again := 0, int64(0)
	for _, v := range done {
		if !v.OK() {
			bad++
		} else if !s.Accept {
			again += *v.GroupAt - *v.To
		}
	}
	if c.JSON {
		document := struct {
			Verb    string                 `json:"verb"`
			DryRun  bool                   `json:"dry_run"`
			Results []operate.PositionView `json:"results"`
			Failed  int                    `json:"failed"`
		}{s.verb, s.DryRun, done, bad}
		if err := c.WriteJSON(document); err != nil {
			return err
		}
	}
	switch {
	case stopped != nil:
		return command.Failed(stopped)
	case bad > 0:
		return command.Failed(fmt.Errorf("%d of %d partitions %s", bad, len(done), map[bool]string{true: "would be refused", false: "were not set"}[s.DryRun]))
	case len(done) == 0 && left > 0:
		return command.Found(fmt.Errorf("nothing was set: in %s the group is ahead of its store since a person, or an older release, has set it so; --ahead takes those, too", output.Counted(left, left, "partition")))
	case len(done) == 0:
		fmt.Fprintln(c.Err, "no group is ahead of its store: there is nothing to set")
	case again > 0:
		fmt.Fprintf(c.Err, "up to %s %s; what has its effect already is a duplicate\n",
			output.Counted(int(again), int(again), "record"), map[bool]string{true: "would come again", false: "come again"}[s.DryRun])
	}
	return nil
}
