package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/demo"
	"github.com/spf13/cobra"
)

func demoCommand(c *command.CLI) *cobra.Command {
	var seed uint64
	var source bool
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what crashes do, without and with semel",
		Long: `Let three consumers book the same payments into SQLite while their processes
are killed: one acks first, one acks last, one uses semel. The command needs no
server and no network.

Each consumer has a process of its own, which is killed at the same deliveries
and steps. The printed figures are read from the databases.

Exit codes: 0 semel applied each payment once and the others did not; 1 that
did not show, or the demo failed.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if source {
				return command.Failed(demo.WriteSource(c.Out))
			}
			return runDemo(cmd.Context(), c, seed, keep)
		},
	}
	c.OutputFlag(cmd)
	cmd.Flags().BoolVar(&source, "source", false, "print the source code of the consumers")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the payments and crashes")
	cmd.Flags().StringVar(&keep, "keep", "", "create the databases in this folder and keep them")
	cmd.MarkFlagsMutuallyExclusive("source", "output")
	cmd.MarkFlagsMutuallyExclusive("source", "seed")
	cmd.MarkFlagsMutuallyExclusive("source", "keep")
	cmd.AddCommand(demoConsumeCommand(c))
	return cmd
}

// demoConsumeCommand returns the hidden command with which the demo starts a consumer in a process of its
// own.
func demoConsumeCommand(c *command.CLI) *cobra.Command {
	return &cobra.Command{
		Use:    "consume NAME DATABASE",
		Short:  "Run a consumer of the demo (internal)",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			// A terminal sends an interrupt to all processes. This process ignores the interrupt, because the parent
			// process ends this process.
			ctx := context.WithoutCancel(cmd.Context())
			return command.Failed(demo.Consume(ctx, args[0], args[1], c.In, c.Raw.Out))
		},
	}
}

func runDemo(ctx context.Context, c *command.CLI, seed uint64, keep string) (err error) {
	folder, remove, err := demoFolder(keep)
	if err != nil {
		return command.Failed(err)
	}
	defer func() { err = errors.Join(err, command.Failed(remove())) }()
	o := demo.Options{Seed: seed, Folder: folder, Process: demoProcess}
	if !c.JSON {
		fmt.Fprint(c.Out, demoExplained)
		if c.ErrTerminal {
			o.Terminal = c.Raw.Err
		}
	}
	report, err := demo.Run(ctx, o)
	if o.Terminal != nil {
		fmt.Fprintln(o.Terminal) // print an empty line after the progress bar
	}
	if err != nil {
		return command.Failed(err)
	}
	if err := printDemo(c, report); err != nil {
		return err
	}
	return command.Failed(report.Check())
}

const demoExplained = `Three consumers book the same payments; some are sent twice by their producer.
Each consumer's process is killed at the same deliveries: on receipt, in the
transaction, and between booking and settling. The figures are their databases'.

`

func printDemo(c *command.CLI, r demo.Report) error {
	if c.JSON {
		return c.WriteJSON(r)
	}
	if err := r.Write(c.Out); err != nil {
		return command.Failed(err)
	}
	_, err := fmt.Fprint(c.Out, "\n'semel demo --source' prints the three consumers;\nREADME.md says how to use semel in yours.\n")
	return command.Failed(err)
}

// demoFolder returns the folder for the databases, and a function that removes the folder at the end. A
// folder that the user named is not removed.
func demoFolder(keep string) (folder string, remove func() error, err error) {
	if keep != "" {
		return keep, func() error { return nil }, os.MkdirAll(keep, 0o755)
	}
	folder, err = os.MkdirTemp("", "semel-demo-")
	return folder, func() error { return os.RemoveAll(folder) }, err
}

// demoProcess returns the command that starts this program again, with the same program name.
func demoProcess(ctx context.Context, name, path string) *exec.Cmd {
	program, err := os.Executable()
	cmd := exec.CommandContext(ctx, program, "demo", "consume", name, path)
	cmd.Args[0] = os.Args[0]
	cmd.Err = errors.Join(cmd.Err, err)
	return cmd
}
