package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/contract"
	"github.com/spf13/cobra"
)

func replayCommand(c *common) *cobra.Command {
	return group("replay", "Process again what a source had", replayStart(c), replayStatus(c), replayStop(c))
}

// replaying is a replay that is wanted.
type replaying struct {
	who, why string
	resume   int64
}

func replayStart(c *common) *cobra.Command {
	r := &replaying{}
	cmd := &cobra.Command{
		Use:   "start --consumer NAME --reason TEXT",
		Short: "Give a consumer again what its source had",
		Long: `Start reads the consumer's source again, beside the consumer's own reader and
without touching its position, and runs the policy's handler here for what is
missing: what has taken effect already is skipped. The consumer may run
meanwhile.

The policy says whether that is allowed, and whether it may have effects outside
of the store (replay: {allowed, effects, max_age}).`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.consumer == "" && r.resume == 0 {
				return usage("--consumer is missing: say whose messages are replayed")
			}
			if err := recorded(&r.who, r.why, false); err != nil {
				return err
			}
			return c.replay(cmd.Context(), r)
		},
	}
	cmd.Flags().Int64Var(&r.resume, "resume", 0, "go on with this replay, which was stopped or killed")
	recordFlags(cmd, &r.who, &r.why)
	refuseEmpty(cmd, "consumer")
	return c.withConfig(c.withConsumer(cmd, "whose messages are replayed"))
}

// replayable is the consumer of the flags, of a policy that lets it be replayed.
func (c *common) replayable() (*policy.Policy, *policy.Consumer, error) {
	p, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	of := p.Consumer(c.consumer)
	if of == nil {
		return nil, nil, c.noConsumer(p, c.consumer)
	}
	if f := p.MayReplay(of); f != nil {
		return nil, nil, faults{*f}
	}
	return p, of, nil
}

// replay begins a replay, or goes on with one, and prints what became of it.
func (c *common) replay(ctx context.Context, r *replaying) error {
	p, of, err := c.replayable()
	if err != nil {
		return err
	}
	a, err := c.openChecked(ctx, p, of.Store)
	if err != nil {
		return err
	}
	defer c.close(a)
	store := a.Stores[0]
	run := &replay.Runner{Store: store, Token: contract.NewToken(), Number: r.resume, Who: r.who}
	part, err := c.beginReplay(ctx, a, of, r, run)
	if err != nil {
		return failed(err)
	}
	defer part.Close()
	format, err := assembly.FormatOf(p.Source(of.From).File.Format)
	if err != nil {
		return failed(err)
	}
	config := of.Config()
	o := replay.Options{Progress: run.Progress, Oldest: of.Replay.Oldest(time.Now()), SentAt: replay.SentAt(config)}
	run.Source = replay.NewSource(part.Source(c.sectionOf(p, of, format)), o)
	consumer, err := a.Replayer(ctx, of.Name, run.Source, semel.Replay{ID: run.Number, Effects: of.Replay.Effects})
	if err != nil {
		return failed(err)
	}
	summary, state, err := run.Run(ctx, of.Name, consumer)
	return c.toldReplay(run, summary, state, err)
}

func (c *common) toldReplay(run *replay.Runner, summary running.Summary, state contract.ReplayState, err error) error {
	_, counts := run.Source.Progress()
	if c.json {
		if e := writeJSON(c.Out, struct {
			Number int64                 `json:"number"`
			State  contract.ReplayState  `json:"state"`
			Counts contract.ReplayCounts `json:"counts"`
		}{run.Number, state, counts}); e != nil {
			return e
		}
	} else {
		fmt.Fprintf(c.Out, "replay %d %s: %s\n", run.Number, state, replay.Sum(counts))
	}
	_ = summary
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.Err, terminal.Line(fmt.Sprintf("go on with it: semel replay start --config %s --consumer %s --resume %d", c.config, c.consumer, run.Number)))
	}
	return failed(err)
}
