package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const replayPolicy = `version: 1
stores:
  shop: {sqlite: {path: shop.db}, migrate: true, setup: setup.sql}
sources:
  payments: {file: {path: in.jsonl, format: json}}
consumers:
  billing:
    from: payments
    store: shop
    identity: {id: "body:/id"}
    lanes: none
    replay: {allowed: true}
    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into booked (id) values (:id)"]}}
`

// replayFolder returns a folder with a source file of n messages to replay.
func replayFolder(t *testing.T, messages int) string {
	t.Helper()
	folder := t.TempDir()
	var lines strings.Builder
	for i := range messages {
		fmt.Fprintf(&lines, `{"id":"m%d"}`+"\n", i)
	}
	for name, text := range map[string]string{"semel.yaml": replayPolicy, "setup.sql": "create table booked (id text)", "in.jsonl": lines.String()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, folder, "semel", "migrate", "up")
	return folder
}

func TestAReplayWhoseProcessIsKilled(t *testing.T) {
	t.Run("G1_law_14_goes_on_and_each_message_takes_effect_once", func(t *testing.T) {
		const messages, kills = 2000, 4
		folder := replayFolder(t, messages)
		asked := func(query string) string {
			return strings.TrimSpace(string(output(t, folder, "sqlite", "shop.db", query)))
		}
		args := []string{"replay", "start", "billing", "--because", "lost", "--rate", "500", "--log-level", "error"}
		for round := range kills {
			r := startAs(t, folder, exec.Command("semel", args...))
			least := (round + 1) * messages / (kills + 8) // the number leaves messages for the next round, even if a busy machine reacts late
			eventually(t, fmt.Sprintf("no %d messages are booked", least), func() bool {
				n, err := strconv.Atoi(asked("select count(*) from booked"))
				return err == nil && n > least
			})
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = r.cmd.Wait()
			if state := asked("select state from semel_replays"); state != "running" {
				t.Fatalf("killed in round %d, the replay is %s", round, state)
			}
			asked("update semel_replays set lease_until = 0")
			args = []string{"replay", "start", "billing", "--because", "lost", "--resume", "1", "--rate", "500", "--log-level", "error"}
		}
		var told struct {
			State  string
			Counts struct{ Read, Applied, Skipped int }
		}
		last := output(t, folder, "semel", "replay", "start", "billing", "--because", "lost", "--resume", "1", "-o", "json")
		if err := json.Unmarshal(last, &told); err != nil || told.State != "done" || told.Counts.Read != messages || told.Counts.Applied+told.Counts.Skipped != messages {
			t.Errorf("%+v, %v", told, err)
		}
		if got, want := asked("select count(*) || ' ' || count(distinct id) from booked"), fmt.Sprintf("%d %d", messages, messages); got != want {
			t.Errorf("booked and distinct are %s, want %s", got, want)
		}
	})
	t.Run("G1_trap_T47_of_two_replays_at_once_one_is_refused_and_the_other_stopped_from_elsewhere", func(t *testing.T) {
		folder := replayFolder(t, 2000)
		r := startAs(t, folder, exec.Command("semel", "replay", "start", "billing", "--because", "lost", "--rate", "10", "--log-level", "error"))
		eventually(t, "no replay has begun", func() bool {
			return string(output(t, folder, "sqlite", "shop.db", "select count(*) from semel_replays")) == "1\n"
		})
		second := exec.Command("semel", "replay", "start", "billing", "--because", "me, too")
		second.Dir = folder
		if text, err := second.CombinedOutput(); err == nil || !strings.Contains(string(text), "replay 1: another replay of the consumer has not ended") {
			t.Errorf("the second: %v, %s", err, text)
		}
		output(t, folder, "semel", "replay", "stop", "1", "--because", "not now", "--as", "bo")
		if err := r.cmd.Wait(); err == nil || r.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("who ran it ended with %v", err)
		}
		if state := string(output(t, folder, "sqlite", "shop.db", "select state from semel_replays")); state != "stopped\n" {
			t.Errorf("the replay is %s", state)
		}
	})
}
