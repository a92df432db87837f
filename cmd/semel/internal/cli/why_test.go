package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

func TestWhyAndCheckFitATerminal(t *testing.T) {
	inHostile(t, "plain words that a person wrote, many of them, and then some more of them")
	printed := func(args ...string) string {
		var out bytes.Buffer
		Main(t.Context(), args, command.Streams{In: strings.NewReader(""), Out: &out, Err: &bytes.Buffer{}, OutTerminal: true, Width: command.UsualWidth, Env: os.LookupEnv})
		return out.String()
	}
	t.Run("K13_K3_each_line_has_80_columns_at_most", func(t *testing.T) {
		for _, args := range [][]string{
			{"why", "id plain words that a person wrote, many of them, and then some more of them"},
			{"why", "id plain words that a person wrote, many of them, and then some more of them", "--consumer", "parking"},
			{"why", "nobody knows this"}, {"messages", "show", "1"}, {"messages", "retry", "1", "--dry-run"}, {"status"}, {"check"}, {"check", "--explain", "2"},
		} {
			out := printed(args...)
			if len(out) < 100 {
				t.Errorf("semel %v prints %q", args, out)
			}
			for line := range strings.Lines(out) {
				if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > command.UsualWidth && !strings.HasPrefix(line, "  semel ") {
					t.Errorf("semel %v: %d columns: %s", args, utf8.RuneCountInString(line), line)
				}
			}
		}
	})
}

func TestTheAnswerOfWhyIsLastWhereItLeftTheScreen(t *testing.T) {
	inHostile(t, "plain words")
	printed := func(height int) string {
		var out bytes.Buffer
		Main(t.Context(), []string{"why", "id plain words"}, command.Streams{In: strings.NewReader(""), Out: &out, Err: &bytes.Buffer{},
			OutTerminal: true, Width: command.UsualWidth, Height: height, Env: os.LookupEnv})
		return out.String()
	}
	all := printed(1000)
	answer, _, _ := strings.Cut(all, "\n\n")
	if lines := strings.Count(all, "\n"); lines < 24 || strings.Count(all, answer) != 1 {
		t.Fatalf("%d lines:\n%s", lines, all)
	}
	if got := printed(24); got != all+"\n"+answer+"\n" {
		t.Errorf("on 24 lines:\n%s", got)
	}
}
