package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

// heredoc finds the files that a block of shell writes.
var heredoc = regexp.MustCompile(`(?s)cat >(\S+) <<'END'\n(.*?\n)END\n`)

func TestTheReadmesPolicyRunsAsItStands(t *testing.T) {
	page, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	files := heredoc.FindAllStringSubmatch(string(page), -1)
	if len(files) != 3 {
		t.Fatalf("the README writes %d files", len(files))
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f[1]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f[1], []byte(f[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, line, found := strings.Cut(string(page), "END\ngo run ./cmd/semel ")
	if line, _, _ = strings.Cut(line, "\n"); !found {
		t.Fatal("the README does not run the policy")
	}
	code, out, log := invoke(strings.Fields(line)...)
	for _, want := range []string{`applied +1\n`, `duplicates +1\n`, `parked +0\n`} {
		if code != command.ExitDone || !regexp.MustCompile(want).MatchString(out) {
			t.Fatalf("exit code %d, no %q in\n%s%s", code, want, out, log)
		}
	}
	t.Run("K3_and_no_question_of_the_design_review_is_answered_with_fail", func(t *testing.T) {
		if code, out, log := invoke("check", "--config", files[0][1]); code != command.ExitDone {
			t.Errorf("exit code %d:\n%s%s", code, out, log)
		}
	})
}
