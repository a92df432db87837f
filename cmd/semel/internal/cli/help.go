package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// group is a group of commands in the help of the root command.
type group struct {
	title string
	names []string
}

// groups returns the groups in the order of the help.
func groups() []group {
	return []group{
		{"Start", []string{"run", "demo", "version"}},
		{"Look", []string{"status", "top", "why", "check", "audit"}},
		{"Messages", []string{"messages", "intents", "gaps"}},
		{"Consumers", []string{"consumers"}},
		{"Repair", []string{"replay", "rebuild", "reconcile"}},
		{"Data", []string{"migrate", "retention", "erase"}},
		{"Tools", []string{"health", "generate"}},
	}
}

func (g group) commands(root *cobra.Command) (all []*cobra.Command) {
	for _, name := range g.names {
		for _, cmd := range root.Commands() {
			if cmd.Name() == name {
				all = append(all, cmd)
			}
		}
	}
	return all
}

// mostLines is the height of a common terminal. Help texts have at most mostLines lines.
const mostLines = 24

// help returns the help text of a command. The text has as many paragraphs of the description as fit a
// terminal, but at least the first. Usage, examples and flags follow the description. The reference has the
// complete description.
func help(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return rootHelp(cmd)
	}
	rest := usage(cmd)
	room := mostLines - strings.Count(rest, "\n")
	var b strings.Builder
	for i, paragraph := range strings.Split(description(cmd), "\n\n") {
		if room -= strings.Count(paragraph, "\n") + 2; i > 0 && room < 0 && !strings.HasPrefix(cmd.CommandPath(), "semel completion") {
			break // the long text of cobra's commands explains how to load the printed script
		}
		b.WriteString(paragraph + "\n\n")
	}
	return b.String() + rest
}

// usage returns the part of a help text after the description.
func usage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s\n", usageLine(cmd))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "Examples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("Commands:\n")
		for _, child := range listedCommands(cmd) {
			fmt.Fprintf(&b, "  %-*s %s\n", widest(listedCommands(cmd)), child.Name(), child.Short)
		}
	}
	flags, named := explainedFlags(cmd)
	if flags.HasFlags() {
		b.WriteString("Flags:\n" + flags.FlagUsagesWrapped(command.UsualWidth))
	}
	for _, by := range slices.Sorted(maps.Keys(named)) {
		b.WriteString(terminal.Wrap("Flags as of "+by+": "+strings.Join(named[by], ", "), command.UsualWidth) + "\n")
	}
	b.WriteString("Global flags: --log-level, --log-format, -v" + variables(cmd) + "\n")
	return b.String()
}

// variables names the variables of the environment that replace flags of a command.
func variables(cmd *cobra.Command) string {
	var names []string
	for _, v := range command.Variables() {
		if cmd.Flags().Lookup(v.Flag) != nil {
			names = append(names, v.Name)
		}
	}
	if names == nil {
		return "; see semel --help"
	}
	return "; variables " + strings.Join(names, ", ")
}

func rootHelp(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage: semel COMMAND; semel COMMAND --help explains it\n")
	for _, g := range groups() {
		title := g.title
		for _, cmd := range g.commands(root) {
			fmt.Fprintf(&b, "  %-10s %-10s %s\n", title, cmd.Name(), cmd.Short)
			title = ""
		}
	}
	b.WriteString("Exit codes: 0 done, 1 failed, 2 wrong use, 3 invalid policy, 4 found something\n")
	b.WriteString("Global flags: --log-level debug|info|warn|error, --log-format text|json, -v\n")
	b.WriteString("SEMEL_CONFIG sets --config, SEMEL_STORE --store; shell: semel completion --help\n")
	return b.String()
}

func description(cmd *cobra.Command) string {
	if cmd.Long == "" {
		return cmd.Short
	}
	return strings.TrimSpace(cmd.Long)
}

func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND"
	}
	line := cmd.UseLine()
	if !strings.Contains(line, "[flags]") {
		line += " [flags]"
	}
	return line
}

// listedCommands returns the subcommands that the help lists.
func listedCommands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(child *cobra.Command) bool { return !child.IsAvailableCommand() })
}

func widest(all []*cobra.Command) (columns int) {
	for _, cmd := range all {
		columns = max(columns, len(cmd.Name())+1)
	}
	return columns
}

// ownFlags returns the flags of a command, without --help and the global flags.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			flags.AddFlag(f)
		}
	})
	return flags
}

// explainedFlags returns the flags that the command's help explains. For all other flags, explainedFlags returns the
// names, grouped by the command whose help explains the flags.
func explainedFlags(cmd *cobra.Command) (*pflag.FlagSet, map[string][]string) {
	flags, named := pflag.NewFlagSet("", pflag.ContinueOnError), map[string][]string{}
	ownFlags(cmd).VisitAll(func(f *pflag.Flag) {
		if by := command.ExplainedBy(f); by != "" {
			named[by] = append(named[by], "--"+f.Name)
			return
		}
		flags.AddFlag(f)
	})
	return flags, named
}
