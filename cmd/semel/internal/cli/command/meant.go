package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// alsoCalled maps a word that other tools use, or that semel used earlier, to the name of the command of
// semel.
var alsoCalled = map[string]string{
	"dead": "messages", "dead-letters": "messages", "dlq": "messages", "inbox": "messages", "parked": "messages",
	"delete": "discard", "doctor": "check", "explain": "why", "lint": "check", "list": "ls", "reap": "retention",
	"redrive": "retry", "requeue": "retry", "serve": "run", "throttle": "limit", "unpause": "resume", "validate": "check",
}

// suggestCommands returns the commands of semel that the user may have meant by an unknown word: commands whose name is
// the word, or the name that alsoCalled has for the word. If a direct subcommand of the called command has such a name,
// suggestCommands returns only this subcommand.
func suggestCommands(cmd *cobra.Command, word string) []string {
	names := []string{word}
	if other, is := alsoCalled[word]; is {
		names = append(names, other)
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && slices.Contains(names, child.Name()) {
			return []string{child.CommandPath()}
		}
	}
	return commandsNamed(cmd.Root(), names)
}

// commandsNamed returns the paths of the commands below cmd that have one of the names.
func commandsNamed(cmd *cobra.Command, names []string) (paths []string) {
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if slices.Contains(names, child.Name()) {
			paths = append(paths, child.CommandPath())
		}
		paths = append(paths, commandsNamed(child, names)...)
	}
	return paths
}

// joinAlternatives joins alternatives as "a, b or c".
func joinAlternatives(all []string) string {
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return all[0]
}
