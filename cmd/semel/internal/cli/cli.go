// Package cli is the command line of semel. Its commands read flags, call the
// packages that do the work and print what came of it. Results go to stdout,
// everything else to stderr.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/spelling"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// OutTerminal and ErrTerminal say that a person reads there: tables fit the
	// width on Out, and progress is shown live on Err. Control characters are
	// escaped on both, whoever reads.
	OutTerminal, ErrTerminal bool
	// Width is how many columns the terminal on Out has, and Height how many lines; 0: unknown.
	Width, Height int
	// Env reads the environment, as os.LookupEnv does.
	Env func(string) (string, bool)
}

// usualWidth is that of a terminal that does not say its own.
const usualWidth = 80

// Terminal returns the streams of the process.
func Terminal() Streams {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width < 1 {
		width, height = usualWidth, 0
	}
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width:       width,
		Height:      height,
		Env:         os.LookupEnv,
	}
}

// Main runs the command that args name and returns the exit code.
func Main(ctx context.Context, args []string, s Streams) int {
	safe := s
	safe.Out, safe.Err = terminal.Text(s.Out), terminal.Text(s.Err)
	root := newRoot(&common{Streams: safe, raw: s})
	root.SetArgs(append([]string{}, args...)) // nil would be the arguments of the process
	root.SetFlagErrorFunc(flagFault(root, args))
	ctx, stop := interruptible(ctx)
	defer stop()
	return report(safe.Err, root.ExecuteContext(ctx))
}

// common are the flags that most commands share.
type common struct {
	Streams
	// raw are the streams without the escaping of what a terminal would obey,
	// for live lines and for the protocol between processes.
	raw      Streams
	config   string
	consumer string
	logs     logging
	json     bool
}

func newRoot(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:   "semel",
		Short: "Each message takes effect once",
		Long: `Semel runs message consumers so that each message takes effect once, whatever
is redelivered, retried, frozen or killed.

Exit codes: 0 done, 1 a run failed, 2 wrong use, 3 the policy is invalid,
4 a check found something, 130 interrupted.`,
		Args:          known,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Version:       thisBuild().line(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", usualWidth)))
	c.logs.add(root)
	root.AddCommand(runCommand(c), healthCommand(c), recordCommand(c), topCommand(c), demoCommand(c), migrateCommand(c), whyCommand(c), checkCommand(c), alertsCommand(c), parkedCommand(c), deadCommand(c), inboxCommand(c), intentsCommand(c), gapsCommand(c), reapCommand(c), pauseCommand(c), resumeCommand(c), limitCommand(c), controlsCommand(c), identityCommand(c), positionsCommand(c), replayCommand(c), auditCommand(c), eraseCommand(c), reconcileCommand(c), schemaCommand(c), versionCommand(c))
	mendDefaults(root)
	addExamples(root)
	completeWords(c, root)
	return root
}

// remark writes a sentence to stderr; on a terminal of a usual width none is cut within a
// word.
func (c *common) remark(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.ErrTerminal {
		text = terminal.Wrap(text, c.Width)
	}
	fmt.Fprintln(c.Err, text)
}

// group is a command that only has subcommands.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: known, RunE: needsOne}
	g.AddCommand(children...)
	return g
}

func needsOne(cmd *cobra.Command, _ []string) error {
	return usage("%s needs one of its commands; see '%s --help'", cmd.CommandPath(), cmd.CommandPath())
}

// mendDefaults makes the commands that the library adds refuse a word that they
// do not know, as ours do: by itself one exits with 0, and so does the other
// after a text that names nothing.
func mendDefaults(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args, cmd.RunE = known, needsOne
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return known(found, rest)
			}
		}
	}
}

// known refuses a word that is none of the command's, and says which was
// probably meant.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() || child.Name() == "help" {
			names = append(names, child.Name())
		}
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	if meant := spelling.Nearest(args[0], names, mostMistyped); meant != "" {
		return fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	if len(names) == 0 {
		return fmt.Errorf("%w; it has no commands", err)
	}
	return fmt.Errorf("%w; it has %s", err, strings.Join(names, ", "))
}

// nothing refuses words behind a command that takes none.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("%s takes no arguments, and got %q; see '%s --help'", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// mostMistyped is how many letters of a command may be wrong, less one.
const mostMistyped = 3

// withConfig adds the flags of a command that reads a policy.
func (c *common) withConfig(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.config, "config", "semel.yaml", "the policy file")
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON document")
	return cmd
}

// withConsumer adds --consumer, completed from the policy.
func (c *common) withConsumer(cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().StringVar(&c.consumer, "consumer", "", help)
	if err := cmd.RegisterFlagCompletionFunc("consumer", c.consumerNames); err != nil {
		panic(err)
	}
	return cmd
}

// consumerWord completes the only word behind a command, which names a consumer.
func (c *common) consumerWord(cmd *cobra.Command, words []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.consumerNames(cmd, words, begun)
}

// load reads the policy; its error is all of its faults.
func (c *common) load() (*policy.Policy, error) {
	p, wrong := policy.Load(c.config, c.Env)
	if len(wrong) > 0 {
		return nil, faults(wrong)
	}
	return p, nil
}
