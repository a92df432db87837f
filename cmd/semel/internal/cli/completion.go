package cli

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ofFiles lists the flags whose value is a file or a folder.
var ofFiles = []string{"config", "file", "keep", "key-file", "head-file", "ids", "messages", "setup"}

// completeWords stops the shell from suggesting files for arguments and flags that are no files.
// completeWords keeps completions that a command already has.
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

// flagFault returns the error for an invalid flag, with the command whose help explains the flag. If the
// flag follows an unknown command, the error is about the unknown command.
func flagFault(root *cobra.Command, args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if _, rest, findErr := root.Find(args); cmd.HasSubCommands() && findErr == nil && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return command.KnownCommand(cmd, rest)
		}
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // the part after the name of the function only repeats the value
		if value, _, ok := strings.Cut(text, ": time: "); ok {
			text = value + "; write a number with its unit, as 10s"
		}
		if text == "unknown flag: --reason" && cmd.Flags().Lookup("because") != nil {
			text += "; --because says why you do this"
		}
		return command.UsageError("%s; see '%s --help'", text, cmd.CommandPath())
	}
}
