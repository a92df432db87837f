package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// alsoCalled has the words that other tools use, or that were used here before, with the words of semel.
var alsoCalled = map[string]string{
	"dead": "messages", "dead-letters": "messages", "dlq": "messages", "inbox": "messages", "parked": "messages",
	"delete": "discard", "doctor": "check", "explain": "why", "lint": "check", "list": "ls", "reap": "retention",
	"redrive": "retry", "requeue": "retry", "serve": "run", "throttle": "limit", "unpause": "resume", "validate": "check",
}

// meant returns the commands of semel that have the unknown word, or the word of semel for it, as
// their name: the one directly below the command that was called, or else all.
func meant(cmd *cobra.Command, word string) []string {
	names := []string{word}
	if other, is := alsoCalled[word]; is {
		names = append(names, other)
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && slices.Contains(names, child.Name()) {
			return []string{child.CommandPath()}
		}
	}
	return named(cmd.Root(), names)
}

// named returns the paths of the commands below cmd that have one of the names.
func named(cmd *cobra.Command, names []string) (paths []string) {
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if slices.Contains(names, child.Name()) {
			paths = append(paths, child.CommandPath())
		}
		paths = append(paths, named(child, names)...)
	}
	return paths
}

// either joins alternatives as "a, b or c".
func either(all []string) string {
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return all[0]
}
