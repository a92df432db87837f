package command

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/spelling"
	"github.com/spf13/cobra"
)

// Group returns a command that only has subcommands.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: KnownCommand, RunE: NeedsOne}
	g.AddCommand(children...)
	return g
}

// NeedsOne implements RunE for a command that only has subcommands. NeedsOne always returns a usage error.
func NeedsOne(cmd *cobra.Command, _ []string) error {
	return UsageError("%s needs one of its commands; see '%s --help'", cmd.CommandPath(), cmd.CommandPath())
}

// KnownCommand returns an error for a word that is not a subcommand, with the commands that are probably
// meant, or with all subcommands.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() || child.Name() == "help" || child.Name() == "completion" {
			names = append(names, child.Name())
		}
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	if len(names) > 0 {
		if all := suggestCommands(cmd, args[0]); len(all) > 0 {
			return fmt.Errorf("%w; did you mean %s?", err, joinAlternatives(all))
		}
	}
	if near := spelling.Nearest(args[0], names, mostMistyped); near != "" {
		return fmt.Errorf("%w; did you mean %s?", err, near)
	}
	if len(names) == 0 {
		return fmt.Errorf("%w; it has no commands", err)
	}
	return fmt.Errorf("%w; it has %s", err, strings.Join(names, ", "))
}

// NoArgs returns a usage error if a command without arguments gets an argument.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return UsageError("%s takes no arguments, and got %q; see '%s --help'", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// mostMistyped is the edit distance between a name and a mistyped word from which the name is no longer
// suggested.
const mostMistyped = 3
