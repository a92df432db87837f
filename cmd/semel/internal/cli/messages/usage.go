package messages

import (
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shareFlags shortens the help of the commands below cmd: flags that many of these commands have
// are only named there. The help of the command that lists messages explains these flags.
func shareFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if shared(cmd, f.Name) {
			command.OnlyName(f, "semel messages ls")
		}
	})
	for _, child := range cmd.Commands() {
		shareFlags(child)
	}
}

// shared reports whether the help of a command shows only the name of a flag.
func shared(cmd *cobra.Command, flag string) bool {
	switch list := cmd.Flags().Lookup("limit") != nil; {
	case flag == "config":
		return true
	case cmd.Name() == "ls":
		return false
	case flag == "output":
		return list // others have other formats
	case slices.Contains([]string{"store", "as", "limit"}, flag):
		return true
	}
	return flag != "source" && flag != "stream" && slices.Contains(filterFlags(), flag)
}
