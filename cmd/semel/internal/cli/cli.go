// Package cli is the command line of semel. The commands read flags, call the packages that do the work, and
// print the results. Results go to standard output, everything else to standard error.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/explain"
	"github.com/semel-go/semel/cmd/semel/internal/cli/messages"
	"github.com/semel-go/semel/cmd/semel/internal/cli/replays"
	"github.com/semel-go/semel/cmd/semel/internal/cli/runs"
	"github.com/semel-go/semel/cmd/semel/internal/cli/stores"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/spf13/cobra"
)

// Main runs the command in args and returns the exit code.
func Main(ctx context.Context, args []string, s command.Streams) int {
	safe := s
	safe.Out, safe.Err = terminal.Text(s.Out), terminal.Text(s.Err)
	c := &command.CLI{Streams: safe, Raw: s}
	root := newRoot(c)
	root.SetArgs(append([]string{}, args...)) // if the arguments were nil, cobra would use the arguments of the process
	root.SetFlagErrorFunc(flagFault(root, args))
	ctx, stop := interruptible(ctx)
	defer stop()
	err := root.ExecuteContext(ctx)
	c.ExplainSuggestions()
	return command.Report(safe.Err, err)
}

func newRoot(c *command.CLI) *cobra.Command {
	root := &cobra.Command{
		Use:           "semel",
		Short:         "Each message takes effect once",
		Args:          command.KnownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       command.ThisBuild().Line(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { c.NoteTyped(cmd) }
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), help(cmd)) })
	c.Logs.Add(root)
	root.AddCommand(versionCommand(c), consumersCommand(c), command.Group("generate", "Print alert rules and the policy's schema", alertsCommand(c), schemaCommand(c)))
	root.AddCommand(runs.Commands(c)...)
	root.AddCommand(messages.Commands(c)...)
	root.AddCommand(explain.Commands(c)...)
	root.AddCommand(replays.Commands(c)...)
	root.AddCommand(stores.Commands(c)...)
	fixCobraCommands(root)
	addExamples(root)
	completeWords(c, root)
	walk(root, c.FromEnvironment)
	return root
}

func consumersCommand(c *command.CLI) *cobra.Command {
	return command.Group("consumers", "List, pause, limit and repair consumers", append(runs.ConsumerCommands(c), stores.IdentityCommand(c))...)
}

// fixCobraCommands hides the commands that cobra adds. fixCobraCommands also makes the commands of cobra reject
// unknown arguments, as the commands of semel do.
func fixCobraCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.CompletionOptions.HiddenDefaultCmd = true
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args, cmd.RunE = command.KnownCommand, command.NeedsOne
		case "help":
			cmd.Hidden = true
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return command.KnownCommand(found, rest)
			}
		}
	}
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels, so that a command can
// finish its work. A second SIGINT or SIGTERM ends the process immediately. A second SIGHUP does not end the
// process, because a closed terminal causes two SIGHUPs: one from the kernel and one from the shell. If the
// process was started with SIGHUP ignored, as by nohup, SIGHUP is ignored.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 3)
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(signals, wanted...)
	var watch sync.WaitGroup
	watch.Go(func() {
		for s := range signals {
			if ctx.Err() != nil && s != syscall.SIGHUP {
				os.Exit(command.ExitInterrupted)
			}
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		watch.Wait()
		cancel()
	}
}
