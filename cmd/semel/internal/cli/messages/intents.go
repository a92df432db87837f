package messages

import (
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

// ofOneSender restricts the flag --all of a command to the intents of one sender. The sender is the consumer
// in --consumer, or the only sender of the policy.
func ofOneSender(c *command.CLI, cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all, err := cmd.Flags().GetBool("all"); err != nil || !all || c.Consumer != "" {
			return run(cmd, args)
		}
		store, err := cmd.Flags().GetString("store")
		if err != nil {
			return err
		}
		p, _, err := c.LoadFor(store)
		if err != nil {
			return err
		}
		senders := sendersOf(p)
		if len(senders) != 1 {
			return command.UsageError("--consumer is missing: name the sender whose intents are meant%s", parenthesize(senders))
		}
		c.Consumer = senders[0]
		return run(cmd, args)
	}
	return cmd
}

// parenthesize returns names in parentheses, or "" if there are no names.
func parenthesize(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// sendersOf returns the names of the policy's consumers that send intents.
func sendersOf(p *policy.Policy) (names []string) {
	for _, consumer := range p.Consumers {
		if consumer.Sends() {
			names = append(names, consumer.Name)
		}
	}
	return names
}
