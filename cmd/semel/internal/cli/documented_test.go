package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/pflag"
)

// documentedLine matches a line of a shell block that runs semel.
var documentedLine = regexp.MustCompile(`^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:go run \./cmd/)?semel (.*)$`)

// documentedCommands returns the semel commands in the shell blocks and the inline code of a page.
func documentedCommands(page string) (all []string) {
	block, shell := false, false
	var prose strings.Builder
	joined := strings.ReplaceAll(page, "\\\n", " ")
	for line := range strings.Lines(joined) {
		text := strings.TrimSpace(line)
		if fence, is := strings.CutPrefix(text, "```"); is {
			block = !block
			shell = block && (fence == "sh" || fence == "console" || fence == "bash")
			continue
		}
		if !block {
			prose.WriteString(line)
		}
		if found := documentedLine.FindStringSubmatch(text); shell && found != nil {
			all = append(all, "semel "+found[1])
		}
	}
	for _, found := range quotedCommand.FindAllStringSubmatch(prose.String(), -1) {
		all = append(all, found[1])
	}
	return all
}

// commandWords splits a line into words, like a shell. commandWords stops at redirections and pipes.
func commandWords(line string) (words []string) {
	word, quote, begun := strings.Builder{}, rune(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == ' ':
			end()
		case !begun && strings.ContainsRune("|&>#;", r):
			return words
		case r == ';':
			end()
			return words
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return words
}

func TestThePagesShowCommandsThatThereAre(t *testing.T) {
	pages := []string{"../../../../README.md", "../../../../CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "docs/*/*/*.md", "examples/*/README.md"} {
		more, err := filepath.Glob("../../../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, slices.DeleteFunc(more, func(path string) bool {
			return strings.Contains(path, "reference/commands/") // the pages of the command reference are generated from the commands
		})...)
	}
	found := 0
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range documentedCommands(string(text)) {
			found++
			line = strings.NewReplacer(" NUMBER", " 17", " MESSAGES", " 50", " COMMAND", "").Replace(line)
			words := commandWords(line)[1:]
			if err := errors.Join(checkSyntax(words), checkReason(words)); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(path), line, err)
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d commands were found", found)
	}
}

// checkReason returns an error for a documented command that changes something and lacks
// --because. A command that a sentence only mentions by name needs no flags. retention run has a default
// reason.
func checkReason(words []string) error {
	cmd, rest, err := newRoot(&command.CLI{}).Find(words)
	if err != nil || len(rest) == 0 || cmd.CommandPath() == "semel retention run" || !slices.Contains(changingCommands, strings.TrimPrefix(cmd.CommandPath(), "semel ")) {
		return nil
	}
	for _, word := range rest {
		if word == "-m" || word == "--because" || word == "--dry-run" {
			return nil
		}
	}
	return errors.New("it is refused without --because")
}

// checkSyntax returns an error if the words are not a valid semel command with valid arguments and
// flags. A command that a sentence only mentions by name needs no arguments.
func checkSyntax(words []string) error {
	cmd, rest, err := newRoot(&command.CLI{}).Find(words)
	if err != nil {
		return err
	}
	err = cmd.ParseFlags(rest)
	var mentioned *pflag.ValueRequiredError
	switch {
	case errors.Is(err, pflag.ErrHelp), errors.As(err, &mentioned):
		return nil
	case err != nil:
		return err
	case cmd.Flags().NArg() == 0:
		return cmd.ValidateFlagGroups()
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	return cmd.ValidateRequiredFlags()
}
