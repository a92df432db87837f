package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
)

// hostileTexts has texts that a payload, a path or an operator's reason can contain to control a
// terminal or to forge a line.
var hostileTexts = map[string]string{
	"escape":       "\x1b[2J\x1b]0;owned\x07",
	"line_feed":    "a\nINJECTED",
	"return":       "a\rINJECTED\r\nINJECTED",
	"bell":         "a\a\b\x7f",
	"C1":           "a\u009b2J\u0085INJECTED\u0090",
	"bidi":         "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f",
	"separators":   "a\u2028INJECTED\u2029INJECTED\v\f",
	"beyond_bmp":   "a\U000e0001\ufeff\u200b",
	"invalid_utf8": "a\xff\xc3\x1b\x9b2J",
	"very_long":    strings.Repeat("long \x1b[2J", 10_000),
}

// hostilePolicy has two consumers whose database rejects messages with an error that contains text of the
// payload. The consumer named parking parks the messages. The consumer named halting halts.
const hostilePolicy = `version: 1
stores: {shop: {sqlite: {path: shop.db}, migrate: true, setup: setup.sql}}
sources:
  notes: {file: {path: in.jsonl, format: json}}
consumers:
  parking:
    from: notes
    store: shop
    identity: {id: "body:/id"}
    retry: {max_attempts: 1, on_exhausted: park}
    replay: {allowed: true}
    handler: {sql: {params: {note: "body:/note"}, statements: [insert into notes (note) values (:note)]}}
  halting:
    from: notes
    store: shop
    identity: {id: "body:/id"}
    retry: {max_attempts: 1, on_exhausted: halt}
    handler: {sql: {params: {note: "body:/note"}, statements: [insert into notes (note) values (:note)]}}
`

const hostileSetup = `create table notes (note text not null) strict;
create trigger refuse before insert on notes begin select raise(abort, new.note); end;
`

// inHostile creates a folder with messages that contain text in every possible place. inHostile runs the
// consumer parking in this folder, and makes the folder the working directory.
func inHostile(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	line, err := json.Marshal(map[string]string{"id": "id " + text[:min(len(text), 200)], "note": "note " + text})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"semel.yaml": hostilePolicy, "setup.sql": hostileSetup,
		"in.jsonl": string(line) + "\n" + `{"id":"` + text + `","note":"` + text + `"}` + "\n",
		"bad.yaml": "version: 1\n" + strconv.Quote(text) + ": 1\nstores: {\"" + strings.ToValidUTF8(text, "?") + "\": {}}\n",
	}
	for name, content := range files {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, log := invoke("run", "--consumer", "parking", "--log-level", "debug"); code != command.ExitDone {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
}

// invoke runs semel in this process and returns the exit code and both outputs.
func invoke(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(context.Background(), args, command.Streams{
		In: strings.NewReader(""), Out: &out, Err: &err, OutTerminal: true, Env: os.LookupEnv,
	})
	return code, out.String(), err.String()
}

// commandsWith returns an invocation of every command. Every argument that a user can choose contains text.
func commandsWith(text string) [][]string {
	// Operating systems do not allow NUL and limit the length of names.
	word := text[:min(len(text), 200)]
	return [][]string{
		{"run", "--consumer", "parking", "--log-format", "json", "--log-level", "debug"},
		{"run", "--consumer", "halting", "--log-level", "debug"},
		{"run", "--consumer", "halting", "-o", "json", "--log-format", "json"},
		{"run", "--consumer", word}, {"run", "--config", word}, {"run", "--config", "bad.yaml"}, {"run", "--log-level", word}, {"run", "--log-format", word}, {"run", word}, {"run", "--" + word},
		{"demo", word}, {"demo", "--seed", word}, {"demo", "--source"}, {"demo", "--keep", word + "\x00"}, {"demo", "consume", word, word + "/none"},
		{"migrate", "up"}, {"migrate", "up", "--config", word}, {"migrate", "up", word}, {"migrate", word},
		{"migrate", "status"}, {"migrate", "status", "-o", "json"}, {"migrate", "print"}, {"migrate", "print", "--config", word}, {"migrate", "grants"}, {"migrate", "grants", "--role", word, "-o", "json"}, {"migrate", "grants", "--store", "sqlite:" + word},
		{"migrate", "seed", word, "--from", word, "--id", word}, {"migrate", "seed", "parking", "--from", word, "--id", word},
		{"migrate", "seed", "parking", "--from", "sqlite_schema", "--id", word}, {"migrate", "seed", "parking", "--from", "notes", "--id", "note", "--where", word},
		{"check"}, {"check", "-o", "json"}, {"check", word}, {"check", "--consumer", word}, {"check", "--config", word}, {"check", "--explain", word}, {"check", "--explain", "13"},
		{"why", word}, {"why", "id " + word}, {"why", "id " + word, "--payload"}, {"why", text, "-o", "json"}, {"why", "id " + word, "-o", "json", "--payload"}, {"why", word, "--store", "sqlite:" + word}, {"why", word, "--consumer", word, "--source", word}, {"why", "base64:" + word},
		{"messages", word}, {"messages", "ls"}, {"messages", "ls", "--state", "all"}, {"messages", "ls", "-o", "json"}, {"messages", "ls", "-o", "wide"},
		{"messages", "ls", "--id", word, "--reason", word}, {"messages", "ls", "--state", word}, {"messages", "ls", "--before", word}, {"messages", "ls", "--store", word}, {"messages", "ls", "-o", word},
		{"messages", "summary"}, {"messages", "summary", "-o", "json"}, {"messages", "summary", "--state", word},
		{"messages", "show", "1"}, {"messages", "show", "1", "--payload"}, {"messages", "show", "2", "--payload"}, {"messages", "show", "1", "--payload", "-o", "json"}, {"messages", "show", "2", "--payload", "-o", "json"}, {"messages", "show", word},
		{"messages", "retry", "1", "--because", word, "--as", word}, {"messages", "retry", "--all", "--because", word, "--as", word, "-o", "json"}, {"messages", "retry", word, "--because", word},
		{"messages", "resolve", "1", "--outcome", "done", "--because", word, "--as", word}, {"messages", "resolve", "1", "--outcome", word, "--because", word},
		{"messages", word}, {"messages", "summary"}, {"messages", "summary", "--by", "state"}, {"messages", "ls", "--group", word}, {"messages", "summary", "-o", "json"}, {"messages", "show", "1"}, {"messages", "show", word},
		{"messages", "retry", "--all", "--dry-run"}, {"messages", "retry", "--all", "--group", word, "--because", word, "--as", word}, {"messages", "retry", word, "--because", word}, {"messages", "edit", "1", "--payload", "no\x1b[31mfile", "--because", word}, {"messages", "discard", "--all", "--group", word, "--because", word, "--as", word},
		{"messages", "discard", "2", "--because", word, "--as", word}, {"messages", "reopen", "2", "--because", word, "--as", word}, {"messages", "show", "2"}, {"messages", "show", "2", "-o", "json"}, {"messages", "ls", "--state", "discarded"},
		{"messages", word}, {"messages", "ls", "--state", "all"}, {"messages", "ls", "--state", "waiting,running,blocked", "--store", "postgres://" + word}, {"messages", "ls", "--state", "waiting,running,blocked", "--store", "sqlite:" + word}, {"messages", "ls", "--state", "waiting,running,blocked", "-o", "json"},
		{"messages", "summary", "--by", "state"}, {"messages", "summary", "--by", "state", "-o", "json"}, {"messages", "summary", "--by", "state", "--store", "sqlite:" + word, "--consumer", word}, {"messages", "show", "1", "--payload"}, {"messages", "show", word},
		{"intents", word}, {"intents", "ls", "--store", "sqlite:" + word}, {"intents", "ls", "--consumer", word, "-o", "json"}, {"intents", "show", word}, {"intents", "retry", "1", "--because", word, "--as", word}, {"intents", "retry", "--all", "--because", word}, {"intents", "suppress", "1", "--because", word}, {"intents", "discard", "1", "--because", word}, {"intents", "release", "1", "--because", word}, {"intents", "resolve", "1", "--outcome", word, "--because", word}, {"intents", "resolve", "1", "--outcome", "sent", "--because", word},
		{"messages", "retry", "1", "--because", word, "--as", word}, {"messages", "retry", "--all", "--run", "--because", word, "-o", "json"}, {"messages", "release", "1", "--because", word}, {"messages", "resolve", "1", "--outcome", "done", "--because", word, "--as", word}, {"messages", "resolve", "1", "--outcome", word, "--because", word}, {"messages", "skip", "1", "--because", word, "--as", word}, {"messages", "skip", "--all", "--because", word, "-o", "json"}, {"messages", "discard", "1", "--because", word, "--as", word},
		{"reconcile", "parking", "--file", "in.jsonl", "--format", "json"}, {"reconcile", "parking", "--file", "in.jsonl", "--format", "json", "-o", "json"}, {"reconcile", word, "--file", word}, {"reconcile", "parking", "--file", "in.jsonl", "--effects", word}, {"reconcile", "parking", "--file", word},
		{"reconcile", "parking", "--topic", word}, {"reconcile", "parking", "--sql", word}, {"reconcile", "parking", "--sql", "select 'x'", "-o", "json"},
		{"gaps", word}, {"gaps", "ls"}, {"gaps", "ls", "-o", "json"}, {"gaps", "ls", "--stream", word, "--source", word, "--store", word}, {"gaps", "show", "--stream", word}, {"gaps", "show", "--stream", word, "-o", "json"},
		{"gaps", "skip", "--stream", word, "--because", word, "--as", word}, {"gaps", "skip", "--all", "--because", word, "-o", "json"}, {"gaps", "skip", word},
		{"gaps", "backfill", "parking", "--file", "in.jsonl", "--format", "json", "--because", word, "--as", word}, {"gaps", "backfill", word, "--file", word, "--because", word},
		{"gaps", "backfill", "parking", "--file", word, "--because", word, "-o", "json"}, {"gaps", "backfill", "parking", "--file", "in.jsonl", "--format", word, "--because", word},
		{"retention"}, {"retention", word}, {"retention", "run"}, {"retention", "run", "-o", "json"}, {"retention", "run", "--dry-run", "--store", word}, {"retention", "run", "--consumer", word}, {"retention", "status"}, {"retention", "status", "-o", "json"}, {"retention", "status", "--store", "sqlite:" + word},
		{"retention", "forget", "parking", "--lane", word, "--because", word, "--as", word}, {"retention", "forget", word, "--lane", word, "--because", word}, {"retention", "print"}, {"retention", "print", "--consumer", word},
		{"retention", "move", word, "--because", word}, {"retention", "move", "parking", "--end", "--because", word, "--as", word},
		{"consumers", "pause", "parking", "--because", word, "--as", word}, {"consumers", "limit", "5", "--because", word, "--as", word, "-o", "json", "--all"}, {"consumers", "ls"}, {"consumers", "ls", "-o", "json"}, {"consumers", "ls", "--store", "sqlite:shop.db", "-o", "wide"},
		{"messages", "retry", "--all", "--run", "--because", word}, {"consumers", "pause", word, "--because", word}, {"consumers", "limit", word, "--because", word, "--all"}, {"consumers", "resume", "--all", "--because", word, "--as", word}, {"consumers", "ls", "--store", word, "--consumer", word},
		{"consumers", "identity", word}, {"consumers", "identity", "ls"}, {"consumers", "identity", "ls", "-o", "json"}, {"consumers", "identity", "ls", "--store", word}, {"consumers", "identity", "retire", "parking", "--generation", "0", "--because", word, "--as", word}, {"consumers", "identity", "retire", word, "--generation", "7", "--because", word},
		{"consumers", "identity", "retire", "parking", "--generation", "0", "--undo", "--because", word, "-o", "json"}, {"consumers", "identity", "release", word, "--because", word}, {"consumers", "identity", "release", "parking", "--because", word, "--dry-run", "-o", "json"},
		{"replay", word}, {"replay", "plan", "parking"}, {"replay", "plan", "parking", "-o", "json"}, {"replay", "plan", "parking", "--from", word}, {"replay", "plan", "parking", "--to", word + "=1"}, {"replay", "start", "parking", "--resume", "1", "--because", word}, {"replay", "start", "parking", "--because", word, "--as", word}, {"replay", "start", "parking", "--because", word, "-o", "json"}, {"replay", "start", word, "--because", word}, {"replay", "start", "halting", "--because", word},
		{"replay", "status"}, {"replay", "status", "-o", "json"}, {"replay", "status", "--store", word}, {"replay", "stop", word, "--because", word}, {"replay", "stop", "1", "--because", word, "--as", word},
		{"rebuild", "start", "parking", "--because", word}, {"rebuild", "switch", "1", "--consumer", word, "--because", word}, {"rebuild", "switch", word, "--consumer", "parking", "--because", word}, {"rebuild", "drop", "1", "--consumer", "parking", "--because", word},
		{"consumers", "positions", word}, {"consumers", "positions", "plan"}, {"consumers", "positions", "plan", "-o", "json"}, {"consumers", "positions", "plan", word}, {"consumers", "positions", "plan", word}, {"consumers", "positions", "reset", "--all", "--because", word, "--as", word}, {"consumers", "positions", "reset", word},
		{"consumers", "positions", "accept", word, "--because", word}, {"consumers", "positions", "accept", "--all", "--because", word, "-o", "json"},
		{"erase", word}, {"erase", "--all", "--dry-run"}, {"erase", "--all", "--dry-run", "-o", "json"}, {"erase", "--all", "--because", word, "--as", word}, {"erase", "--id", word, "--because", word}, {"erase", "--consumer", word, "--because", word}, {"erase", "--header", word, "--because", word}, {"erase", "--state", word, "--because", word}, {"erase", "--from", word, "--because", word}, {"erase", "--ids", word, "--because", word}, {"erase", "--store", "sqlite:" + word, "--all", "--dry-run"},
		{"audit", word}, {"audit", "ls"}, {"audit", "ls", "-o", "json"}, {"audit", "ls", "-o", "wide"}, {"audit", "ls", "--who", word, "--verb", word, "--since", word}, {"audit", "ls", "--store", word},
		{"audit", "seal"}, {"audit", "seal", "-o", "json"}, {"audit", "verify"}, {"audit", "verify", "-o", "json"}, {"audit", "verify", "--head", word}, {"audit", "verify", "--file", word}, {"audit", "verify", "--file", "in.jsonl"}, {"audit", "verify", "--key-file", word},
		{"audit", "export"}, {"audit", "export", "--store", word},
		{"health"}, {"health", "-o", "json"}, {"health", "--timeout", word}, {"health", "--config", word}, {"health", word},
		{"consumers", "record"}, {"consumers", "record", "-o", "json"}, {"consumers", "record", "--timeout", word}, {"consumers", "record", "--config", word}, {"consumers", "record", word},
		{"top"}, {"top", "--once"}, {"top", "-o", "json"}, {"top", "--consumer", word}, {"top", "--store", word}, {"top", "--store", "sqlite:" + word}, {"top", "--every", word}, {"top", word},
		{"generate", "alerts"}, {"generate", "alerts", word}, {"generate", "schema"}, {"generate", "schema", word}, {"generate", word}, {"rebuild", word}, {"rebuild", "status"}, {"rebuild", "stop", word, "--because", word}, {"consumers", word}, {"status"}, {"status", "-o", "json"}, {"status", "--consumer", word}, {"status", "--store", "sqlite:" + word}, {"version"}, {"version", "-o", "json"}, {"version", word}, {"--version"},
		{word}, {"--help"}, {"help", word}, {"help", "messages"}, {"completion", "bash"}, {"completion", "fish"}, {"completion", "powershell"}, {"completion", "zsh"}, {"completion", word},
		{"__complete", "run", "--config", "bad.yaml", "--consumer", ""}, {"__complete", "messages", word},
	}
}

// unsafe returns the first control character or forged line in an output, or "".
func unsafe(printed string) string {
	for _, line := range strings.Split(printed, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "INJECTED") {
			return "a forged line: " + strconv.Quote(line)
		}
		for i, r := range line {
			invalid := r == '\uFFFD' && !strings.HasPrefix(line[i:], "\uFFFD")
			if invalid || r != '\t' && !strconv.IsPrint(r) {
				return strconv.Quote(line[max(0, i-60):min(len(line), i+20)])
			}
		}
	}
	return ""
}

func TestNothingThatAMessageHoldsRulesTheTerminal(t *testing.T) {
	t.Run("trap_T106_every_command_prints_what_came_from_outside_safely", func(t *testing.T) {
		for name, text := range hostileTexts {
			t.Run(name, func(t *testing.T) {
				inHostile(t, text)
				var halted, refused bool
				for _, args := range commandsWith(text) {
					code, out, log := invoke(args...)
					if found := unsafe(out + log); found != "" {
						t.Errorf("semel %.200q printed %s", args, found)
					}
					if i := slices.Index(args, "-o"); i >= 0 && args[i+1] == "json" && out != "" && !json.Valid([]byte(out)) {
						t.Errorf("semel %.200q printed no JSON: %.200q", args, out)
					}
					halted = halted || code == command.ExitFailed && strings.Contains(log, "halted by message") && strings.Contains(log, "note ")
					refused = refused || code == command.ExitPolicy
				}
				if !halted || !refused {
					t.Errorf("the situations did not occur: a halt that tells the payload %v, a refused policy %v", halted, refused)
				}
			})
		}
	})
	t.Run("the_table_has_every_command", func(t *testing.T) {
		called := map[string]bool{}
		root := newRoot(&command.CLI{})
		for _, args := range commandsWith("x") {
			if cmd, _, err := root.Find(args); err == nil {
				called[cmd.CommandPath()] = true
			}
		}
		walk(root, func(cmd *cobra.Command) {
			if !called[cmd.CommandPath()] && !slices.Contains([]string{"semel completion", "semel help"}, cmd.CommandPath()) {
				t.Errorf("%s is not called with hostile texts", cmd.CommandPath())
			}
		})
	})
}
