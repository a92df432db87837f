package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// messagesOutput is the JSON output of `semel messages retry -o json`.
type messagesOutput struct {
	Results []struct{ Number, Result, Error json.RawMessage }
	Failed  int
}

// runMessagesCommand runs a subcommand of `semel messages` in folder and returns the parsed output. Exit code 1 is
// allowed.
func runMessagesCommand(t *testing.T, folder string, args ...string) messagesOutput {
	t.Helper()
	cmd := exec.Command("semel", append([]string{"messages"}, append(args, "--because", "test", "-o", "json")...)...)
	cmd.Dir = folder
	out, err := cmd.Output()
	var document messagesOutput
	if json.Unmarshal(out, &document) != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return document
}

// parkedFolder returns a folder with a parked message. The cause of the failure is already corrected, so a
// retry succeeds. The test can append messages.
func parkedFolder(t *testing.T, id string) string {
	t.Helper()
	folder := folderWith(t, `{sql: "insert into done (id) select :id where exists (select 1 from done)", rows: 1, otherwise: park}`)
	line, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "in.jsonl"), append(line, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	stopFollowing(t, folder)
	output(t, folder, "semel", "run")
	output(t, folder, "sqlite", "shop.db", "insert into done values ('cause')")
	return folder
}

// stopFollowing changes the policy so that the source ends at the end of the file.
func stopFollowing(t *testing.T, folder string) {
	t.Helper()
	edit(t, filepath.Join(folder, "semel.yaml"), "follow: true", "follow: false")
}

// edit replaces old in a file. The file must contain the text old.
func edit(t *testing.T, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%q is not in %s", old, path)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestActsOfOperatorsTakeEffectOnce(t *testing.T) {
	effects := func(t *testing.T, folder string) string {
		return string(output(t, folder, "sqlite", "shop.db", "select count(*) from done where id <> 'cause'"))
	}
	t.Run("trap_21_a_message_that_was_handled_is_not_run_again", func(t *testing.T) {
		folder := parkedFolder(t, "p1")
		if first := runMessagesCommand(t, folder, "retry", "--run", "1"); first.Failed != 0 || string(first.Results[0].Result) != `"applied"` {
			t.Fatalf("the first retry: %s", first.Results)
		}
		second := runMessagesCommand(t, folder, "retry", "--run", "1")
		if second.Failed != 0 || string(second.Results[0].Result) != `"skipped as applied"` {
			t.Errorf("the second retry: %s", second.Results)
		}
		if got := effects(t, folder); got != "1\n" {
			t.Errorf("%s effects", got)
		}
	})
	t.Run("trap_144_of_acts_of_a_kind_at_the_same_time_one_is_done", func(t *testing.T) {
		folder := parkedFolder(t, "p1")
		var all sync.WaitGroup
		results := make([]messagesOutput, 4)
		for i := range results {
			all.Go(func() { results[i] = runMessagesCommand(t, folder, []string{"retry", "discard"}[i%2], "1") })
		}
		all.Wait()
		recorded := func(a messagesOutput) int { // the number of recorded retries; 0 if the row was already due
			if a.Failed > 0 || a.Results[0].Error != nil {
				return 0
			}
			return 1
		}
		retried, discarded := recorded(results[0])+recorded(results[2]), recorded(results[1])+recorded(results[3])
		if retried > 1 || discarded > 1 || retried+discarded == 0 { // a retried row can be discarded afterwards
			t.Errorf("%d retries and %d discards were done: %v", retried, discarded, results)
		}
		if got := string(output(t, folder, "sqlite", "shop.db", "select count(*) from semel_acts where verb in ('retry', 'discard')")); got != fmt.Sprintln(retried+discarded) {
			t.Errorf("%s acts are recorded as done", got)
		}
	})
}

func TestListsHideNothingAndAreSafeToPrint(t *testing.T) {
	t.Run("trap_85_control_characters_of_ids_are_escaped", func(t *testing.T) {
		folder := parkedFolder(t, "p\x1b[2J\nINJECTED\tp")
		list := string(output(t, folder, "semel", "messages", "ls"))
		if strings.ContainsAny(list, "\x1b\t") || strings.Count(list, "\n") != 2 || !strings.Contains(list, `p\x1b[2J\nINJECTED\tp`) {
			t.Errorf("the list is %q", list)
		}
	})
	t.Run("trap_18_a_row_that_cannot_be_read_hides_no_other", func(t *testing.T) {
		folder := parkedFolder(t, "p1")
		if err := os.WriteFile(filepath.Join(folder, "in.jsonl"), []byte("{}\n{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		output(t, folder, "semel", "run")
		output(t, folder, "sqlite", "shop.db", "update semel_inbox set envelope = 'no JSON', sum = x'01' where number = 1")
		list := string(output(t, folder, "semel", "messages", "ls"))
		if strings.Count(list, " parked ") != 3 {
			t.Errorf("the list is:\n%s", list)
		}
	})
}
