package messages

import (
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shareFlags shortens the help texts of the subcommands of cmd. Only the help of the command ls explains a
// flag that many subcommands have; the help of every other subcommand shows only the flag's name.
func shareFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if isShared(cmd, f.Name) {
			command.OnlyName(f, "semel messages ls")
		}
	})
	for _, child := range cmd.Commands() {
		shareFlags(child)
	}
}

// isShared reports whether a command's help shows only the name of the flag.
func isShared(cmd *cobra.Command, flag string) bool {
	switch list := cmd.Flags().Lookup("limit") != nil; {
	case flag == "config":
		return true
	case cmd.Name() == "ls":
		return false
	case flag == "output":
		return list // commands that print no list have other formats
	case slices.Contains([]string{"store", "as", "limit"}, flag):
		return true
	}
	return flag != "source" && flag != "stream" && slices.Contains(filterFlags(), flag)
}
