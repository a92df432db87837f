package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// flagFault says what is wrong with a flag and whose help tells more. Behind a
// command that does not exist any flag is unknown: then the command is named.
func flagFault(root *cobra.Command, args []string) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		if _, rest, findErr := root.Find(args); cmd.HasSubCommands() && findErr == nil && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return known(cmd, rest)
		}
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // says nothing that the value does not show
		if value, _, ok := strings.Cut(text, ": time: "); ok {
			text = value + "; write a number with its unit, as 10s"
		}
		if text == "unknown flag: --reason" && cmd.Flags().Lookup("because") != nil {
			text += "; --because says why you do this"
		}
		return usage("%s; see '%s --help'", text, cmd.CommandPath())
	}
}
