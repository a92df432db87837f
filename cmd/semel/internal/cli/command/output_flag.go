package command

import (
	"errors"

	"github.com/spf13/cobra"
)

// OutputFlag adds --output to a command that prints text or one JSON document. Lists have more formats; see
// Listing.
func (c *CLI) OutputFlag(cmd *cobra.Command) *cobra.Command {
	if cmd.Flags().Lookup("output") != nil {
		return cmd
	}
	cmd.Flags().VarP(&textOrJSON{&c.JSON}, "output", "o", "text or json")
	CompleteFlag(cmd, "output", []string{formatText, formatJSON})
	return cmd
}

// textOrJSON is the value of the flag --output of a command that prints no list.
type textOrJSON struct{ json *bool }

func (f *textOrJSON) String() string {
	if f.json != nil && *f.json {
		return formatJSON
	}
	return formatText
}

// Set sets the format.
func (f *textOrJSON) Set(format string) error {
	if format != formatText && format != formatJSON {
		return errors.New("use text or json")
	}
	*f.json = format == formatJSON
	return nil
}

// Type returns the name of the type for help texts.
func (*textOrJSON) Type() string { return "string" }
