// Package runs has the commands that run consumers, show and control running consumers, and set positions.
package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this package.
func Commands(c *command.CLI) []*cobra.Command {
	return []*cobra.Command{
		runCommand(c), healthCommand(c), topCommand(c), statusCommand(c), demoCommand(c),
	}
}

// ConsumerCommands returns the commands of this package that are subcommands of `semel consumers`.
func ConsumerCommands(c *command.CLI) []*cobra.Command {
	return []*cobra.Command{consumersList(c), pauseCommand(c), resumeCommand(c), limitCommand(c), positionsCommand(c), recordCommand(c)}
}

func runCommand(c *command.CLI) *cobra.Command {
	var idle time.Duration
	var migrate, fromStart bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the consumers of a policy",
		Long: `Run the consumers of a policy until every source has ended. The first SIGINT or
SIGTERM finishes messages in flight and exits with 0; a second one exits at
once with 130.

Files that are not followed and standard input end; topics do not. A file is
read from where the last run stopped, or with --from-start from its beginning:
messages that were processed before are duplicates then and change nothing.
SIGHUP works as SIGTERM, unless the process was started with nohup.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("exit-when-idle") && idle <= 0 {
				return command.UsageError("--exit-when-idle %v: give a positive duration, as 1s", idle)
			}
			p, err := c.Load()
			if err != nil {
				return err
			}
			if c.Consumer != "" && p.Consumer(c.Consumer) == nil {
				return c.NoConsumer(p, c.Consumer)
			}
			if source := assembly.NotAFile(p, c.Consumer); fromStart && source != "" {
				return command.UsageError("--from-start: source %s is no file; set the group's offsets back with the broker's tools, or choose a consumer of a file with --consumer", source)
			}
			who, err := command.OperatorName("")
			if err != nil {
				who = "semel run" // a service does not have to give a name
			}
			return run(cmd.Context(), c, p, migrate, assembly.Options{Who: who, Consumer: c.Consumer, IdleExit: idle, Stdin: c.In, FromStart: fromStart})
		},
	}
	cmd.Flags().DurationVar(&idle, "exit-when-idle", 0, "exit when sources are empty so long")
	cmd.Flags().BoolVar(&migrate, "migrate", false, "create and upgrade Semel's tables first")
	cmd.Flags().BoolVar(&fromStart, "from-start", false, "read files from their beginning")
	return c.WithConfig(c.WithConsumer(cmd, "run only this consumer"))
}

// execution is one execution of `semel run`.
type execution struct {
	*command.CLI
	policy  *policy.Policy
	migrate bool
	options assembly.Options
	live    *running.Live // nil if standard error is not a terminal
	aside   running.Aside
	// If summarized is set, the log leaves out lines whose content the summary shows.
	summarized bool
}

// run creates the consumers, runs them and prints the summary.
func run(ctx context.Context, c *command.CLI, p *policy.Policy, migrate bool, o assembly.Options) error {
	e := &execution{CLI: c, policy: p, migrate: migrate, options: o}
	stderr, closeLive := c.Err, func() {}
	if c.ErrTerminal {
		e.live = running.NewLive(c.Raw.Err)
		stderr, closeLive = terminal.Text(e.live), e.live.Close
	}
	var err error
	if e.options.Logger, e.summarized, err = c.Log(stderr); err != nil {
		closeLive()
		return err
	}
	redirectLog(e.options.Logger)
	e.aside.Rowless = func(consumer string) bool {
		of := p.Consumer(consumer)
		return of != nil && p.Store(of.Store).Redis != nil
	}
	e.options.Observers = []semel.Observer{&e.aside}
	summary, err := e.consume(ctx)
	closeLive()
	if summary.Consumers == nil {
		return err
	}
	if wrote := e.print(summary); wrote != nil {
		return wrote
	}
	return err
}

// print prints the summary. Without -o json, print adds the parked and dead-lettered messages, with reasons
// and commands.
func (e *execution) print(s running.Summary) error {
	if e.JSON {
		return e.WriteJSON(s)
	}
	if err := s.Write(e.Out); err != nil {
		return command.Failed(err)
	}
	columns := terminal.Unlimited
	if e.OutTerminal {
		columns = e.Width
	}
	return command.Failed(e.aside.Write(e.Out, columns, func(verb string, flags ...string) string {
		return e.Suggest(append([]string{"messages", verb}, flags...)...)
	}))
}

// consume runs the consumers and returns the summary. If no consumer could start, the summary is empty.
func (e *execution) consume(ctx context.Context) (running.Summary, error) {
	p, o := e.policy, e.options
	warn(p, o)
	recorded := newRecorders(p, o.Logger)
	if err := recorded.check(); err != nil {
		return running.Summary{}, command.Failed(err)
	}
	o.Recorder = recorded.recorderFunc()
	defer recorded.onSignal()()
	mayCreate := func(s *policy.Store) bool { return e.migrate || s.Migrate }
	o.ContinueOnFailure = true
	a, err := assembly.Open(p, o, assembly.Used(p, o.Consumer), mayCreate)
	if err != nil {
		return running.Summary{}, command.Failed(err)
	}
	defer e.Close(a)
	traced, err := e.trace(ctx, a)
	if err != nil {
		return running.Summary{}, command.Failed(err)
	}
	defer traced.Close()
	served, err := e.serve(a, recorded, traced)
	if err != nil {
		return running.Summary{}, command.Failed(err)
	}
	if served != nil {
		defer served.Close()
	}
	consumers, err := start(ctx, a, e.migrate, o.Logger)
	if err != nil || consumers == nil {
		return running.Summary{}, command.Failed(err)
	}
	runnable := map[string]running.Consumer{}
	for name, consumer := range consumers {
		if !e.summarized { // the documentation explains the retention to a person at a terminal
			o.Logger.Info("markers are kept", append([]any{"consumer", name, "retention", p.Consumer(name).Kept()}, p.Consumer(name).Says()...)...)
		}
		runnable[name] = consumer
		if e.live != nil {
			e.live.Add(name, consumer)
		}
	}
	if served != nil {
		served.Started(asMetrics(consumers))
	}
	defer logStopping(ctx, o.Logger, e.live)()
	summary, err := running.All(ctx, runnable, o.Logger, func(name string) bool { return consumers[name].EndsProcess() })
	summary.ReadBefore = map[string]int64{}
	for name, consumer := range consumers {
		if at, ok := consumer.ReadBefore(); ok {
			summary.ReadBefore[name] = at
		}
	}
	if errors.Is(err, semel.ErrBehind) {
		err = errors.Join(err, fmt.Errorf("stop all processes of the consumer; what would be set: %s", e.Suggest("consumers", "positions", "plan")),
			fmt.Errorf("then set it: %s", resetLine(e.CLI, &groupFlags{})))
	}
	return summary, command.Failed(err)
}

// startsAtOnce is the time after which a slow start is logged.
const startsAtOnce = 3 * time.Second

// start prepares the stores and sources and creates the consumers. If ctx ends before start has finished,
// start returns no error, because no message was fetched.
func start(ctx context.Context, a *assembly.Assembly, migrate bool, log *slog.Logger) (map[string]*assembly.Runner, error) {
	waits := time.AfterFunc(startsAtOnce, func() {
		log.Info("waiting for the store and the source to answer; nothing has been fetched yet")
	})
	defer waits.Stop()
	err := a.Prepare(ctx, migrate)
	var consumers map[string]*assembly.Runner
	if err == nil {
		consumers, err = a.Consumers(ctx)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped before anything was fetched")
		return nil, nil
	}
	return consumers, err
}

// logStopping logs a line when ctx ends. The caller must call the returned function before it prints the
// summary; the function waits until the line is written.
func logStopping(ctx context.Context, log *slog.Logger, live *running.Live) func() {
	said := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(said)
		if live != nil {
			live.Interrupted()
		}
		log.Info("stopping: messages in flight are finished first; a second SIGINT or SIGTERM ends the process at once")
	})
	return func() {
		if !stop() { // the function that logs the stop is already running
			<-said
		}
	}
}
