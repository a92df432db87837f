package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

// quotedCommand matches the semel commands in a text.
var quotedCommand = regexp.MustCompile("`(semel [^`]+)`")

// An operator types the commands of a runbook at night, so each command must exist.
func TestTheRunbooksNameCommandsThatThereAre(t *testing.T) {
	runbooks, err := os.ReadFile("../../../../docs/operate/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	found := quotedCommand.FindAllStringSubmatch(string(runbooks), -1)
	if len(found) < 20 {
		t.Fatalf("only %d commands were found", len(found))
	}
	for _, line := range found {
		t.Run("K5_"+strings.ReplaceAll(line[1], " ", "_"), func(t *testing.T) {
			line, _, _ := strings.Cut(line[1], " >") // the text after > is for the shell
			words := strings.Fields(strings.NewReplacer("NUMBER", "17", "MESSAGES", "50").Replace(line))
			cmd, rest, err := newRoot(&command.CLI{}).Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err == nil {
				err = cmd.ValidateRequiredFlags()
			}
			if err != nil || cmd.RunE == nil {
				t.Fatalf("%s: %v", line, err)
			}
			path := strings.TrimPrefix(cmd.CommandPath(), "semel ")
			if why := cmd.Flags().Lookup("because"); slices.Contains(changingCommands, path) && path != "retention run" && !why.Changed {
				t.Errorf("%s: an act wants a reason", line)
			}
		})
	}
}
