package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// moving is what a move to days is asked for.
type moving struct {
	end, dry bool
	who, why string
}

func reapMove(c *common) *cobra.Command {
	m := moving{}
	cmd := &cobra.Command{
		Use:   "move --consumer NAME --because TEXT [--end]",
		Short: "Move a consumer's markers to a table of days while it works",
		Long: `Begins to move markers of a consumer whose policy says daily_partitions: true
out of the table of all. From then on processes with that policy start, beside
those of before. When none of those runs any more, --end copies the markers, has
the consumer wait while it copies the last ones, and removes them from the table
of all. Each may be called again, also after it was interrupted.

Exit codes: 0 done; 4 the move is not over: the table of all could not be
closed to processes of before, or ids are in another spelling.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.consumer == "" {
				return usage("--consumer is missing")
			}
			if err := recorded(&m.who, m.why, m.dry); err != nil {
				return err
			}
			return c.move(cmd.Context(), m)
		},
	}
	cmd.Flags().BoolVar(&m.end, "end", false, "end the move: no process of before may run")
	cmd.Flags().BoolVar(&m.dry, "dry-run", false, "only say what would be done")
	recordFlags(cmd, &m.who, &m.why)
	refuseEmpty(cmd, "consumer")
	return c.withConfig(c.withConsumer(cmd, "the consumer"))
}

// move records the act and does it.
func (c *common) move(ctx context.Context, m moving) error {
	p, err := c.load()
	if err != nil {
		return err
	}
	of := p.Consumer(c.consumer)
	switch {
	case of == nil:
		return usage("no consumer %q in %s", c.consumer, c.config)
	case !of.Retention.DailyPartitions:
		return usage("consumer %q keeps no days in %s: say retention: {daily_partitions: true} first", of.Name, c.config)
	}
	a, err := c.openChecked(ctx, p, of.Store)
	if err != nil {
		return err
	}
	defer c.close(a)
	return c.moveIn(ctx, a.Stores[0], of, m) // the only one that was opened
}

func (c *common) moveIn(ctx context.Context, s *assembly.Store, of *policy.Consumer, m moving) error {
	name, verb := legible.Printable(of.Name), "begin a move to days"
	if m.end {
		verb = "end a move to days"
	}
	if m.dry {
		_, err := fmt.Fprintf(c.Out, "%s: would %s\n", name, verb)
		return failed(err)
	}
	if err := s.Record(ctx, store.Act{Verb: verb, Who: m.who, Why: fmt.Sprintf("consumer %s: %s", of.Name, m.why)}); err != nil {
		return failed(fmt.Errorf("store %s: %w", s.Name(), err))
	}
	if !m.end {
		return c.began(name, s.BeginMove(ctx, assembly.Dated(of)))
	}
	done, err := s.EndMove(ctx, of.Name)
	return c.ended(name, done, err)
}

func (c *common) began(name string, err error) error {
	if err != nil {
		return failed(err)
	}
	if c.json {
		return c.writeJSON(map[string]string{"consumer": name, "result": "moving"})
	}
	_, err = fmt.Fprintf(c.Out, "%s: moves; start processes with this policy, and when no other runs any more: semel reap move --end\n", name)
	return failed(err)
}

func (c *common) ended(name string, done sqlstore.Moved, err error) error {
	switch {
	case errors.Is(err, semel.ErrState):
		return found(err)
	case err != nil:
		return failed(err)
	case c.json:
		err = c.writeJSON(struct {
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
		return found(errors.New("the table of all could not be locked, to close it to processes of before: call it again when less is going on"))
	}
	return failed(err)
}
