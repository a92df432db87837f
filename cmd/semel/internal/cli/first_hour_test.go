package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

// TestTheFirstHourWithAPolicyPrintsWhatThePageShows runs the commands in the section "Try it". Below each
// command, the page must show the output of the command on a terminal of 80 columns.
func TestTheFirstHourWithAPolicyPrintsWhatThePageShows(t *testing.T) {
	commands, printed := tryIt(t, "../../../../docs/start/first-hour-policy.md")
	if len(commands) != 3 || len(printed) != 3 {
		t.Fatalf("the page has %d commands and %d outputs", len(commands), len(printed))
	}
	inExample(t, "../../../../examples/payments")
	for i, line := range commands {
		args, ours := strings.CutPrefix(line, "go run ./cmd/semel ")
		if !ours {
			t.Fatalf("%q does not run semel", line)
		}
		var out, err bytes.Buffer
		code := Main(context.Background(), strings.Fields(args), command.Streams{
			In: strings.NewReader(""), Out: &out, Err: &err, OutTerminal: true, Width: 80, Env: os.LookupEnv,
		})
		if code != command.ExitDone {
			t.Fatalf("%s: exit code %d:\n%s", line, code, &err)
		}
		if got, want := normalize(out.String()), normalize(printed[i]); got != want {
			t.Errorf("%s prints\n%s\nand the page shows\n%s", line, got, want)
		}
		for text := range strings.Lines(out.String()) {
			if columns := len([]rune(strings.TrimSuffix(text, "\n"))); columns > 80 {
				t.Errorf("%d columns: %s", columns, text)
			}
		}
	}
}

func TestNoQuestionFailsForThePolicyOfTheFirstHour(t *testing.T) {
	inExample(t, "../../../../examples/payments")
	const policy = "examples/payments/semel.yaml"
	if code, _, log := invoke("run", "--config", policy); code != command.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	if code, out, log := invoke("check", "--config", policy); code != command.ExitDone {
		t.Errorf("exit code %d:\n%s%s", code, out, log)
	}
}

// tryIt returns the commands and the outputs in the section "Try it".
func tryIt(t *testing.T, path string) (commands, printed []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Try it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, block := range strings.Split(section, "```") {
		commandLine, shell := strings.CutPrefix(block, "sh\n")
		switch {
		case i%2 == 0:
		case shell:
			commands = append(commands, strings.TrimSpace(commandLine))
		default:
			printed = append(printed, strings.TrimPrefix(block, "\n"))
		}
	}
	return commands, printed
}

// inExample changes to a folder in which the example has the path that the page names.
func inExample(t *testing.T, example string) {
	t.Helper()
	folder := t.TempDir()
	there := filepath.Join(folder, "examples", "payments")
	if err := os.MkdirAll(there, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"semel.yaml", "setup.sql", "payments.jsonl"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(there, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
}

var (
	age = regexp.MustCompile(`\b\d+s\b *`)
	// The number of reruns depends on the sizes of batches.
	rerun = regexp.MustCompile(`rerun +\d+`)
)

// normalize replaces the parts of an output that depend on time or machine.
func normalize(text string) string {
	return rerun.ReplaceAllString(age.ReplaceAllString(text, "AGE "), "rerun N")
}
