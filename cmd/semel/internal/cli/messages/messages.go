// Package messages has the commands that show, change and erase messages and intents.
package messages

import (
	"strconv"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/internal/admin"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this package.
func Commands(c *command.CLI) []*cobra.Command {
	all := []*cobra.Command{messagesCommand(c), intentsCommand(c), gapsCommand(c), eraseCommand(c)}
	for _, cmd := range all {
		shareFlags(cmd)
	}
	return all
}

// subject says whether a command is for messages or for intents. An intent is a row in the inbox of its
// sender, so the commands for messages and for intents are the same.
type subject struct {
	word    string
	intents bool
}

func messagesCommand(c *command.CLI) *cobra.Command {
	of := subject{word: "message"}
	return command.Group("messages", "Show and repair messages that need a person",
		summaryCommand(c), listCommand(c, of), showCommand(c, of), retryCommand(c, of), editCommand(c),
		actCommand(c, of, admin.Discard), actCommand(c, of, admin.Reopen), actCommand(c, of, admin.Resolve),
		actCommand(c, of, admin.Skip), actCommand(c, of, admin.Release))
}

func intentsCommand(c *command.CLI) *cobra.Command {
	of := subject{word: "intent", intents: true}
	return command.Group("intents", "Show and repair intents",
		listCommand(c, of), showCommand(c, of), retryCommand(c, of), actCommand(c, of, admin.Resolve),
		actCommand(c, of, admin.Suppress), actCommand(c, of, admin.Release), actCommand(c, of, admin.Discard))
}

// attention returns the states of messages that need a person.
func attention() []admin.State { return []admin.State{admin.Parked, admin.Dead} }

// standard returns the states that a command chooses if the user does not give --state.
func (of subject) standard(verb admin.Verb) []admin.State {
	switch {
	case verb == admin.Release:
		return []admin.State{admin.Running}
	case verb == admin.Reopen:
		return []admin.State{admin.Discarded}
	case verb == admin.Suppress:
		return []admin.State{admin.Waiting}
	case verb == admin.Resolve || verb == admin.Skip:
		return []admin.State{admin.Parked}
	case of.intents && verb != "":
		return append(attention(), admin.Waiting)
	case of.intents:
		return append(attention(), admin.Waiting, admin.Running)
	}
	return attention()
}

func parseNumbers(args []string) ([]int64, error) {
	var numbers []int64
	for _, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 1 {
			return nil, command.UsageError("%q is no row number; ls shows them", a)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
