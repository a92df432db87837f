// Package cli is the command line of semel. Its commands read flags, call the
// packages that do the work and print what came of it. Results go to stdout,
// everything else to stderr.
package cli

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// OutTerminal and ErrTerminal say that a person reads there: control
	// characters are escaped on Out, and progress is shown live on Err.
	OutTerminal, ErrTerminal bool
	// Env reads the environment, as os.LookupEnv does.
	Env func(string) (string, bool)
}

// Terminal returns the streams of the process.
func Terminal() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Env:         os.LookupEnv,
	}
}

// Main runs the command that args name and returns the exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	ctx, stop := interruptible(ctx)
	defer stop()
	return report(s.Err, root.ExecuteContext(ctx))
}

// common are the flags that most commands share.
type common struct {
	Streams
	config   string
	consumer string
	logLevel string
	json     bool
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "semel",
		Short: "Each message takes effect once",
		Long: `Semel runs message consumers so that each message takes effect once, whatever
is redelivered, retried, frozen or killed.

Exit codes: 0 done, 1 a run failed, 2 wrong use, 3 the policy is invalid,
4 a check found something, 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c := &common{Streams: s}
	root.PersistentFlags().StringVar(&c.logLevel, "log-level", "info", "least level of the log on stderr: debug, info, warn or error")
	root.AddCommand(runCommand(c), demoCommand(c), migrateCommand(c), parkedCommand(c), schemaCommand(c), versionCommand(c))
	return root
}

// group is a command that only has subcommands.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return usage("semel %s needs one of its commands; see 'semel %s --help'", cmd.Name(), cmd.Name())
	}}
	g.AddCommand(children...)
	return g
}

// withConfig adds the flags of a command that reads a policy.
func (c *common) withConfig(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.config, "config", "semel.yaml", "the policy file")
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON document")
	return cmd
}

// withConsumer adds --consumer, completed from the policy.
func (c *common) withConsumer(cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().StringVar(&c.consumer, "consumer", "", help)
	names := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		p, err := c.load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var all []string
		for _, consumer := range p.Consumers {
			all = append(all, consumer.Name)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("consumer", names); err != nil {
		panic(err)
	}
	return cmd
}

// load reads the policy; its error is all of its faults.
func (c *common) load() (*policy.Policy, error) {
	p, wrong := policy.Load(c.config, c.Env)
	if len(wrong) > 0 {
		return nil, faults(wrong)
	}
	return p, nil
}

// log is the log on w from --log-level on.
func (c *common) log(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, usage("--log-level %q is no level; use debug, info, warn or error", c.logLevel)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
