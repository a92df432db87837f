package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const reconciledPolicy = `version: 1
stores: {bank: {sqlite: {path: bank.db}, migrate: true, setup: setup.sql}}
sources: {in: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  billing:
    from: in
    store: bank
    filter: {type: paid}
    identity: {id: id, source: source}
    handler:
      sql:
        params: {id: id, amount: "body:/amount"}
        statements: ["insert into entries (event, amount) values (:id, :amount)"]
`

func TestWhatWasSentIsComparedWithWhatWasApplied(t *testing.T) {
	folder := t.TempDir()
	line := func(id, kind string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/shop","type":%q,"time":"2026-01-02T03:04:05Z","data":{"amount":1}}`+"\n", id, kind)
	}
	var sent, in strings.Builder
	for i := range 1000 {
		l := line(fmt.Sprintf("p-%d", i), "paid")
		sent.WriteString(l)
		if i != 17 {
			in.WriteString(l)
		}
	}
	sent.WriteString(line("other", "refunded") + line("", "paid"))
	for name, text := range map[string]string{"semel.yaml": reconciledPolicy, "in.jsonl": in.String(), "sent.jsonl": sent.String(), "setup.sql": "create table entries (event text, amount integer not null);"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, folder, "semel", "run")
	reconcile := func(args ...string) (code int, out []byte) {
		cmd := exec.Command("semel", append([]string{"reconcile", "billing"}, args...)...)
		cmd.Dir = folder
		out, err := cmd.Output()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out
	}
	if code, out := reconcile("--file", "in.jsonl", "--effects", "select event from entries"); code != 0 || string(out) != "999 identities were sent: 999 applied\n" {
		t.Errorf("exit code %d\n%s", code, out)
	}
	output(t, folder, "sqlite", "bank.db", "insert into entries select event, 1 from entries where event = 'p-3'")
	output(t, folder, "sqlite", "bank.db", "delete from entries where event = 'p-4'")
	output(t, folder, "sqlite", "bank.db", "insert into entries values ('p-17', 1)")
	t.Run("G7_with_an_exit_code_for_schedulers", func(t *testing.T) {
		code, out := reconcile("--file", "sent.jsonl", "--effects", "select event, '/shop' from entries", "-o", "json")
		var told struct {
			Sent, Applied, Doubled, Unmarked, Unusable, Skipped int
			WithoutEffect                                       int `json:"without_effect"`
			Findings                                            []struct{ What, ID string }
		}
		if err := json.Unmarshal(out, &told); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if code != 4 || told.Sent != 1000 || told.Applied != 997 || told.Doubled != 1 || told.WithoutEffect != 1 || told.Unmarked != 1 || told.Unusable != 1 || told.Skipped != 1 || len(told.Findings) != 4 {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
	t.Run("G7_a_table_for_people", func(t *testing.T) {
		code, out := reconcile("--file", "sent.jsonl")
		if code != 4 || !strings.Contains(string(out), "missing  p-17") || !strings.Contains(string(out), "1000 identities were sent: 999 applied, 1 missing; 1 messages have no identity; 1 messages are not the consumer's") {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
	for name, refused := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a_query_that_writes":           {[]string{"--file", "in.jsonl", "--effects", "delete from entries returning event"}, 1, "--effects: "},
		"a_query_of_three_columns":      {[]string{"--file", "in.jsonl", "--effects", "select 1, 2, 3"}, 1, "3 columns"},
		"a_row_without_an_id":           {[]string{"--file", "in.jsonl", "--effects", "select null"}, 1, "a row has no id"},
		"a_file_that_is_not_there":      {[]string{"--file", "none.jsonl"}, 1, "none.jsonl"},
		"a_grace_that_is_none":          {[]string{"--file", "in.jsonl", "--grace", "-1s"}, 2, "--grace -1s"},
		"no_file":                       {nil, 2, "--file is missing"},
		"a_format_that_is_none_of_them": {[]string{"--file", "in.jsonl", "--format", "xml"}, 2, "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("semel", append([]string{"reconcile", "billing"}, refused.args...)...)
			cmd.Dir = folder
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != refused.code || !strings.Contains(string(out), refused.says) {
				t.Errorf("exit code %d\n%s", code, out)
			}
		})
	}
	if got := string(output(t, folder, "sqlite", "bank.db", "select count(*) from entries")); got != "1000\n" {
		t.Errorf("%s entries: something was written", got)
	}
}
