package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/running"
)

func runCommand(c *common) *cobra.Command {
	var idle time.Duration
	var migrate bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the consumers of a policy",
		Long: `Run consumes until every source has ended: files that are not followed and
standard input end by themselves. The first SIGINT or SIGTERM drains and exits
with 0, the second exits with 130 at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("exit-when-idle") && idle <= 0 {
				return usage("--exit-when-idle %v: give a positive duration, as 1s", idle)
			}
			p, err := c.load()
			if err != nil {
				return err
			}
			if c.consumer != "" && p.Consumer(c.consumer) == nil {
				return usage("--consumer %q: %s has no consumer of this name", c.consumer, c.config)
			}
			return c.run(cmd.Context(), p, migrate, assembly.Options{Consumer: c.consumer, IdleExit: idle, Stdin: c.In})
		},
	}
	cmd.Flags().DurationVar(&idle, "exit-when-idle", 0, "end when the sources have been empty for so long")
	cmd.Flags().BoolVar(&migrate, "migrate", false, "create and upgrade semel's tables first")
	return c.withConfig(c.withConsumer(cmd, "run only this consumer"))
}

// run assembles the consumers, runs them and prints the summary.
func (c *common) run(ctx context.Context, p *policy.Policy, migrate bool, o assembly.Options) error {
	stderr, closeLive := io.Writer(c.Err), func() {}
	var live *running.Live
	if c.ErrTerminal {
		live = running.NewLive(c.Err)
		stderr, closeLive = live, live.Close
	}
	var err error
	if o.Logger, err = c.log(stderr); err != nil {
		closeLive()
		return err
	}
	summary, err := c.consume(ctx, p, migrate, o, live)
	closeLive()
	if summary.Consumers == nil {
		return err
	}
	if c.json {
		if wrote := writeJSON(c.Out, summary); wrote != nil {
			return wrote
		}
		return err
	}
	if wrote := summary.Write(c.Out); wrote != nil {
		return failed(wrote)
	}
	return err
}

// consume returns no summary when the consumers could not start.
func (c *common) consume(ctx context.Context, p *policy.Policy, migrate bool, o assembly.Options, live *running.Live) (running.Summary, error) {
	for _, w := range p.Warnings {
		o.Logger.Warn(w.String())
	}
	mayCreate := func(s *policy.Store) bool { return migrate || s.Migrate }
	a, err := assembly.Open(p, o, assembly.Used(p, o.Consumer), mayCreate)
	if err != nil {
		return running.Summary{}, failed(err)
	}
	defer c.close(a)
	if err := a.Prepare(ctx, migrate); err != nil {
		return running.Summary{}, failed(err)
	}
	consumers, err := a.Consumers(ctx)
	if err != nil {
		return running.Summary{}, failed(err)
	}
	runnable := map[string]running.Consumer{}
	for name, consumer := range consumers {
		o.Logger.Info("markers are kept: nothing removes them in this release", "consumer", name, "retention", "forever")
		runnable[name] = consumer
		if live != nil {
			live.Add(name, consumer.Counts, consumer.Source)
		}
	}
	summary, err := running.All(ctx, runnable)
	return summary, failed(err)
}
