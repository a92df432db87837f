package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ofFiles are the flags whose value is a file, or a folder.
var ofFiles = []string{"config", "file", "keep"}

// completeWords has the shell propose no files where the commands want none. What has words
// of its own keeps them.
func completeWords(c *common, root *cobra.Command) {
	walkCommands(root, func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, has := cmd.GetFlagCompletionFunc(f.Name); has || slices.Contains(ofFiles, f.Name) || f.NoOptDefVal != "" {
				return
			}
			propose := cobra.NoFileCompletions
			if f.Name == "store" {
				propose = c.storeNames
			}
			if err := cmd.RegisterFlagCompletionFunc(f.Name, propose); err != nil {
				panic(err)
			}
		})
	})
}

func walkCommands(cmd *cobra.Command, see func(*cobra.Command)) {
	see(cmd)
	for _, child := range cmd.Commands() {
		walkCommands(child, see)
	}
}

// storeNames completes the name of a store of the policy.
func (c *common) storeNames(*cobra.Command, []string, string) (all []string, _ cobra.ShellCompDirective) {
	p, err := c.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, s := range p.Stores {
		all = append(all, s.Name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
