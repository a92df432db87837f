package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

// effectsExamples maps each example whose handler responds with effects to the command that starts the
// handler.
func effectsExamples() map[string][]string {
	return map[string][]string{"python-effects": {"python3", "-u", "transfer.py"}, "node-effects": {"node", "transfer.js"}}
}

// effectsExample returns a folder with a copy of an example.
func effectsExample(t *testing.T, name string) string {
	t.Helper()
	command := effectsExamples()[name]
	return handlerExample(t, name, "semel.yaml", "setup.sql", "transfers.jsonl", command[len(command)-1])
}

// contentQuery is a query for the content of the database. The result of the query shows whether a
// message was lost or applied twice.
const contentQuery = "select sum(balance) || ' in the accounts, ' || (select count(*) from notes) || ' notes' from accounts"

func TestTheExamplesWhoseHandlersAnswerWithEffectsDoWhatTheirTextsSay(t *testing.T) {
	for name, command := range effectsExamples() {
		t.Run("K10_case_16_"+name, func(t *testing.T) {
			folder := effectsExample(t, name)
			startHandler(t, folder, command...)
			var summary struct{ Consumers map[string]semel.Counts }
			if err := json.Unmarshal(output(t, folder, "semel", "run", "-o", "json"), &summary); err != nil {
				t.Fatal(err)
			}
			c := summary.Consumers["booking"]
			if applied, parked := c.Applied+c.Inbox.Applied, c.Parked+c.Inbox.Parked; applied != 39 || c.Duplicates != 3 || parked != 1 || (c.Received == 0) != (name == "python-effects") {
				t.Errorf("%+v", c)
			}
			if got := string(output(t, folder, "sqlite", "bank.db", contentQuery)); got != "50000 in the accounts, 39 notes\n" {
				t.Error(got)
			}
			if list := output(t, folder, "semel", "messages", "ls"); !bytes.Contains(list, []byte("transfer-13")) || !bytes.Contains(list, []byte("There is nothing to transfer")) {
				t.Errorf("%s", list)
			}
		})
	}
}

func TestTheAnswersOfTheExampleTakeEffectOnce(t *testing.T) {
	folder := handlerExample(t, "python-effects", "semel.yaml", "setup.sql", "transfers.jsonl", "answers.jsonl")
	out := string(output(t, folder, "semel", "check", "--prove", "--answers", "answers.jsonl"))
	for _, want := range []string{"consumer booking: tested with 5 messages on SQLite\n", "pass  calls to a provider   3 subtests\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("K3: no %q in\n%s", want, out)
		}
	}
}

// startQuiet starts a run that logs only errors. The test does not read the log, so a longer log would fill
// the pipe.
func startQuiet(t *testing.T, folder string) *backgroundRun {
	t.Helper()
	return startAs(t, folder, exec.Command("semel", "run", "--log-level", "error"))
}

func TestTheExamplesWhoseHandlersAnswerWithEffectsUnderKillsOfBothProcesses(t *testing.T) {
	for name, command := range effectsExamples() {
		t.Run("K10_law_12_each_transfer_is_booked_once_"+name, func(t *testing.T) {
			const transfers, kills = 700, 6
			folder := effectsExample(t, name)
			var lines strings.Builder
			sum := 0
			for i := range transfers {
				sum += i%5 + 1
				fmt.Fprintf(&lines, `{"specversion":"1.0","id":"t-%d","source":"/bank","type":"transfer.ordered","data":{"from":"account-0","to":"account-1","amount":%d}}`+"\n", i, i%5+1)
			}
			replace(t, folder, "transfers.jsonl", func(string) string { return lines.String() })
			replace(t, folder, "semel.yaml", func(policy string) string {
				return strings.NewReplacer("timeout: 5s", "timeout: 2500ms", "format: cloudevents", "format: cloudevents, follow: true", "    handler:\n",
					"    inbox: {lease: 3s, poll: 50ms, max_crashes: 100}\n    retry: {max_attempts: 1000, initial_delay: 10ms, max_delay: 100ms, budget: {per_second: 1000}}\n    handler:\n").Replace(policy)
			})
			killBoth(t, folder, kills, "POST /transfer", func() *python { return startHandler(t, folder, command...) },
				func() bool {
					return string(output(t, folder, "sqlite", "bank.db", "select count(*) from semel_markers where outcome = 1")) == fmt.Sprintf("%d\n", transfers)
				})
			const moved = "select (10000 - balance) || ' moved, ' || (select count(*) from notes) || ' notes' from accounts where id = 'account-0'"
			if got, want := string(output(t, folder, "sqlite", "bank.db", moved)), fmt.Sprintf("%d moved, %d notes\n", sum, transfers); got != want {
				t.Errorf("%s, and should be %s", got, want)
			}
			if got, want := string(output(t, folder, "sqlite", "bank.db", contentQuery)), fmt.Sprintf("50000 in the accounts, %d notes\n", transfers); got != want {
				t.Errorf("%s, and should be %s", got, want)
			}
		})
	}
}

func TestTheHandlersInTheDocsAreTheExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/http-handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"http-handler/charge.py", "python-effects/transfer.py"} {
		code, err := os.ReadFile("../../examples/" + file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(page), "<!-- examples/"+file+" -->\n```python\n")
		if text, _, ends := strings.Cut(rest, "```\n"); !found || !ends || text != string(code) {
			t.Errorf("docs/guides/http-handlers.md prints another handler than examples/%s; copy it there", file)
		}
	}
}
