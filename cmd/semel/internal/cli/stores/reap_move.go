package stores

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// moveFlags has the flags of `semel retention move`, which moves markers to daily partitions.
type moveFlags struct {
	end, dryRun bool
	who, why    string
}

func retentionMove(c *command.CLI) *cobra.Command {
	m := moveFlags{}
	cmd := &cobra.Command{
		Use:   "move NAME --because TEXT [--end]",
		Short: "Move markers to daily partitions",
		Long: `Begin to move the markers of a consumer with daily_partitions: true from the
common table to daily partitions. --end ends the move when no old process runs.

After the first step, processes with the new policy can start beside the old
ones. --end copies the markers, pauses the consumer while it copies the last
ones, and removes them from the common table. Both steps can be repeated after
an interruption.

Exit codes: 0 done; 4 the move has not ended: the common table could not be
closed to old processes, or ids are spelled differently.`,
		ValidArgsFunction: c.ConsumerWord,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError("name one consumer")
			}
			c.Consumer = args[0]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckRecord(&m.who, m.why, m.dryRun); err != nil {
				return err
			}
			return move(cmd.Context(), c, m)
		},
	}
	cmd.Flags().BoolVar(&m.end, "end", false, "end the move; old processes must not run any more")
	command.DryRunFlag(cmd, &m.dryRun)
	command.RecordFlags(cmd, &m.who, &m.why)
	return c.WithConfig(cmd)
}

// move writes an audit record and then moves the markers.
func move(ctx context.Context, c *command.CLI, m moveFlags) error {
	p, err := c.Load()
	if err != nil {
		return err
	}
	of := p.Consumer(c.Consumer)
	switch {
	case of == nil:
		return command.UsageError("no consumer %q in %s", c.Consumer, c.Config)
	case !of.Retention.DailyPartitions:
		return command.UsageError("consumer %q keeps no days in %s: say retention: {daily_partitions: true} first", of.Name, c.Config)
	}
	a, err := c.OpenChecked(ctx, p, of.Store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	return moveIn(ctx, c, a.Stores[0], of, m) // only one store is open
}

func moveIn(ctx context.Context, c *command.CLI, s *assembly.Store, of *policy.Consumer, m moveFlags) error {
	name, verb := legible.Printable(of.Name), "begin a move to days"
	if m.end {
		verb = "end a move to days"
	}
	if m.dryRun {
		_, err := fmt.Fprintf(c.Out, "%s: would %s\n", name, verb)
		return command.Failed(err)
	}
	if err := s.Record(ctx, store.Act{Verb: verb, Who: m.who, Why: fmt.Sprintf("consumer %s: %s", of.Name, m.why)}); err != nil {
		return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
	}
	if !m.end {
		return reportBegin(c, name, s.BeginMove(ctx, assembly.Dated(of)))
	}
	done, err := s.EndMove(ctx, of.Name)
	return reportEnd(c, name, done, err)
}

func reportBegin(c *command.CLI, name string, err error) error {
	if err != nil {
		return command.Failed(err)
	}
	if c.JSON {
		return c.WriteJSON(map[string]string{"consumer": name, "result": "moving"})
	}
	end := c.Suggest("retention", "move", name, "--end", "--because", "WHY")
	_, err = fmt.Fprintf(c.Out, "%s: moves; start processes with this policy, and when no other runs any more: %s\n", name, terminal.Line(end))
	return command.Failed(err)
}

func reportEnd(c *command.CLI, name string, done sqlstore.Moved, err error) error {
	switch {
	case errors.Is(err, semel.ErrState):
		return command.Found(err)
	case err != nil:
		return command.Failed(err)
	case c.JSON:
		err = c.WriteJSON(struct {
			Consumer string  `json:"consumer"`
			Copied   int64   `json:"copied"`
			Removed  int64   `json:"removed"`
			Held     float64 `json:"held_seconds"`
			Closed   bool    `json:"closed"`
		}{name, done.Copied, done.Removed, done.Held.Seconds(), done.Fenced})
	default:
		_, err = fmt.Fprintf(c.Out, "%s: moved; %d markers copied, %d removed from the table of all, held for %v\n", name, done.Copied, done.Removed, done.Held.Round(time.Millisecond))
	}
	if err == nil && !done.Fenced {
		return command.Found(errors.New("the table of all could not be locked, to close it to processes of before: call it again when less is going on"))
	}
	return command.Failed(err)
}
