package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
)

// changingCommands lists the commands that change stored data or control consumers. Each of these commands has the flag
// --dry-run.
var changingCommands = []string{
	"gaps skip",
	"erase", "consumers identity release", "consumers identity retire",
	"intents discard", "intents release", "intents resolve", "intents retry", "intents suppress",
	"messages discard", "messages edit", "messages release", "messages reopen", "messages resolve", "messages retry", "messages skip",
	"consumers limit", "consumers pause", "consumers resume",
	"consumers positions accept", "consumers positions reset",
	"retention forget", "retention move", "retention run",
	"rebuild drop", "rebuild start", "rebuild stop", "rebuild switch", "replay start", "replay stop",
}

// commandsWithoutDryRun has the commands that change something but have no flag --dry-run, each with the reason.
var commandsWithoutDryRun = map[string]string{
	"run":           "it is the work itself",
	"demo":          "it works in a folder of its own",
	"check":         "it changes nothing, except that --prove writes a file beside the policy",
	"migrate up":    "semel migrate print shows what it would do, and semel migrate status what is missing",
	"migrate seed":  "it only adds, and a second time adds nothing",
	"audit seal":    "semel audit ls --unsealed shows what it would seal",
	"gaps backfill": "it only adds, and a second time adds nothing",
}

// commandsWithoutJSON has the commands without the flag -o json, each with the reason.
var commandsWithoutJSON = map[string]string{
	"audit export":    "it prints a line of JSON for each change",
	"generate alerts": "it prints rules that Prometheus reads",
	"generate schema": "it prints one JSON document, always",
	"migrate print":   "it prints SQL for psql",
}

func TestEveryCommandKeepsToTheRules(t *testing.T) {
	known := map[string]bool{}
	walk(newRoot(&command.CLI{}), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "semel ")
		if cmd.Hidden || path == "semel" || path == "help" || strings.HasPrefix(path, "completion") || cmd.HasAvailableSubCommands() {
			return
		}
		known[path] = true
		t.Run("K6_"+strings.ReplaceAll(path, " ", "_"), func(t *testing.T) {
			if has, document := cmd.Flags().Lookup("output") != nil, commandsWithoutJSON[path] != ""; has == document {
				t.Errorf("it has -o json: %v; it is one of the documents: %v", has, document)
			}
			if has, act := cmd.Flags().Lookup("dry-run") != nil, slices.Contains(changingCommands, path); has != act {
				t.Errorf("it has --dry-run: %v; it is one of the acts: %v", has, act)
			}
		})
	})
	for _, path := range slices.Concat(changingCommands, slices.Collect(maps.Keys(commandsWithoutDryRun)), slices.Collect(maps.Keys(commandsWithoutJSON))) {
		if !known[path] {
			t.Errorf("%q is no command", path)
		}
	}
}

func TestConsumersAreCompleted(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "semel.yaml")
	if err := os.WriteFile(policy, []byte(hostilePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	completed := func(words ...string) string {
		var out bytes.Buffer
		Main(t.Context(), append([]string{"__complete"}, words...), command.Streams{Out: &out, Err: &bytes.Buffer{}, Env: os.LookupEnv})
		return out.String()
	}
	walk(newRoot(&command.CLI{}), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		name := strings.ReplaceAll(strings.Join(path, "_"), " ", "_")
		if cmd.Hidden {
			return
		}
		if cmd.Flags().Lookup("consumer") != nil {
			t.Run("K6_"+name+"_by_its_flag", func(t *testing.T) {
				if out := completed(append(path, "--config", policy, "--consumer", "")...); !strings.Contains(out, "parking") {
					t.Errorf("it proposes %q", out)
				}
			})
		}
		if namesUsage.MatchString(cmd.Use) {
			t.Run("K6_"+name+"_by_its_word", func(t *testing.T) {
				if out := completed(append(path, "--config", policy, "")...); !strings.Contains(out, "parking") {
					t.Errorf("it proposes %q", out)
				}
			})
		}
	})
}

// namesUsage matches the usage of a command whose arguments are names of consumers.
var namesUsage = regexp.MustCompile(`^\w+ \[?NAME`)

// noFiles is the output of a completion that tells the shell not to suggest files.
const noFiles = ":4\n"

func TestFilesAreCompletedOnlyWhereOneIsMeant(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "semel.yaml")
	if err := os.WriteFile(policy, []byte(hostilePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"run --config":                         true,
		"gaps backfill --file":                 true,
		"demo --keep":                          true,
		"audit verify --file":                  true,
		"audit verify --key-file":              true,
		"erase --ids":                          true,
		"check --messages":                     true,
		"check --setup":                        true,
		"check --ignore":                       false,
		"erase --id":                           false,
		"audit verify --head":                  false,
		"audit ls --who":                       false,
		"retention forget --lane":              false,
		"gaps skip --stream":                   false,
		"gaps ls --source":                     false,
		"messages ls --id":                     false,
		"messages ls --limit":                  false,
		"messages retry":                       false,
		"messages show":                        false,
		"consumers identity retire":            false,
		"why":                                  false,
		"check":                                false,
		"run":                                  false,
		"messages retry --because":             false,
		"messages ls --reason":                 false,
		"migrate seed --from":                  false,
		"retention status --store":             false,
		"consumers positions plan --log-level": false,
	} {
		var out bytes.Buffer
		words := append([]string{"__complete"}, append(strings.Fields(line), "")...)
		Main(t.Context(), words, command.Streams{Out: &out, Err: &bytes.Buffer{}, Env: os.LookupEnv})
		if files := !strings.HasSuffix(out.String(), noFiles); files != want {
			t.Errorf("semel %s: files are completed: %v\n%s", line, files, &out)
		}
	}
	var out bytes.Buffer
	Main(t.Context(), []string{"__complete", "retention", "status", "--config", policy, "--store", ""}, command.Streams{Out: &out, Err: &bytes.Buffer{}, Env: os.LookupEnv})
	if stores := strings.TrimSuffix(out.String(), noFiles); strings.TrimSpace(stores) == "" {
		t.Error("no store of the policy is completed")
	}
}

func TestOneTimeIsNamedForPausesAndLimits(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operate/pause.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"pause.md": string(page)}
	for _, verb := range []string{"pause", "resume", "limit"} {
		_, texts[verb], _ = invoke("consumers", verb, "--help")
	}
	for name, text := range texts {
		for _, found := range seconds.FindAllString(text, -1) {
			if strings.Join(strings.Fields(found), " ") != "3 seconds" {
				t.Errorf("%s: %s", name, found)
			}
		}
		if !strings.Contains(strings.Join(strings.Fields(text), " "), "within 3 seconds") {
			t.Errorf("%s does not say when processes obey:\n%s", name, text)
		}
	}
}

// seconds matches a number of seconds in a text.
var seconds = regexp.MustCompile(`\d+\s+seconds`)
