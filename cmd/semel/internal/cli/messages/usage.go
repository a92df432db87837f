package messages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage prints the usage of a command. The flags that many commands of this package share have a line
// together, except on the command that lists messages.
func usage(cmd *cobra.Command) error {
	out := cmd.OutOrStderr()
	fmt.Fprintln(out, "Usage:")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(out, "  %s [command]\n", cmd.CommandPath())
	} else {
		fmt.Fprintln(out, "  "+cmd.UseLine())
	}
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(out, "\nCommands:")
		for _, child := range cmd.Commands() {
			fmt.Fprintf(out, "  %-*s  %s\n", cmd.NamePadding(), child.Name(), child.Short)
		}
	}
	own, shared := pflag.NewFlagSet("", pflag.ContinueOnError), []string{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden, f.Name == "help":
		case collapsed(cmd, f.Name):
			shared = append(shared, "--"+f.Name)
		default:
			own.AddFlag(f)
		}
	})
	if own.HasAvailableFlags() {
		fmt.Fprintf(out, "\nFlags:\n%s", own.FlagUsages())
	}
	if len(shared) > 0 {
		fmt.Fprint(out, terminal.Wrap("Other flags, as of semel messages ls: "+strings.Join(shared, ", "), command.UsualWidth)+"\n")
	}
	fmt.Fprintln(out, "Global flags: --log-level, --log-format, --verbose; see semel --help")
	return nil
}

// collapsed reports whether the help of a command only names a flag.
func collapsed(cmd *cobra.Command, flag string) bool {
	switch flag {
	case "config", "json":
		return true
	case "store", "as":
		return cmd.Name() != "ls"
	case "output", "limit":
		return cmd.Name() != "ls"
	case "source", "stream":
		return false
	}
	return cmd.Name() != "ls" && cmd.Name() != "backfill" && slices.Contains(filterFlags(), flag)
}
