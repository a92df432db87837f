package cli

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ofFiles are the flags whose value is a file, or a folder.
var ofFiles = []string{"config", "file", "keep", "key-file", "head-file", "ids", "messages", "setup"}

// completeWords has the shell propose no files where the commands want none. What has words
// of its own keeps them.
func completeWords(c *command.CLI, root *cobra.Command) {
	walk(root, func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, has := cmd.GetFlagCompletionFunc(f.Name); has || slices.Contains(ofFiles, f.Name) || f.NoOptDefVal != "" {
				return
			}
			propose := cobra.NoFileCompletions
			if f.Name == "store" {
				propose = c.StoreNames
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, propose); err != nil {
				panic(err)
			}
		})
	})
}

func walk(cmd *cobra.Command, see func(*cobra.Command)) {
	see(cmd)
	for _, child := range cmd.Commands() {
		walk(child, see)
	}
}

// flagFault says what is wrong with a flag and whose help tells more. Behind a
// command that does not exist any flag is unknown: then the command is named.
func flagFault(root *cobra.Command, args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if _, rest, findErr := root.Find(args); cmd.HasSubCommands() && findErr == nil && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return command.KnownCommand(cmd, rest)
		}
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // says nothing that the value does not show
		if value, _, ok := strings.Cut(text, ": time: "); ok {
			text = value + "; write a number with its unit, as 10s"
		}
		if text == "unknown flag: --reason" && cmd.Flags().Lookup("because") != nil {
			text += "; --because says why you do this"
		}
		return command.UsageError("%s; see '%s --help'", text, cmd.CommandPath())
	}
}
