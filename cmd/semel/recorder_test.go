package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/internal/simulator/mutation"
)

// recordedFolder returns a folder like folderWith, with a flight recorder in the policy.
func recordedFolder(t *testing.T, statement string) string {
	t.Helper()
	folder := folderWith(t, statement)
	text, err := os.ReadFile(filepath.Join(folder, "semel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"semel.yaml": "recorder: {folder: .}\n" + string(text),
		"in.jsonl":   `{"id":"secret-1"}` + "\n" + `{"id":"secret-1"}` + "\n" + `{"id":"secret-2"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// recordedFile waits until the log names a recording, and returns the path of the recording.
func recordedFile(t *testing.T, run *backgroundRun) string {
	t.Helper()
	run.await(t, "a recording is written")
	var line struct{ File string }
	if err := json.Unmarshal(run.log.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	return line.File
}

func readRecording(t *testing.T, path string) *recording.File {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := recording.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAStuckRunIsReplayedFromItsRecording(t *testing.T) {
	t.Run("K14_a_real_process_that_is_stuck_is_replayed_to_the_same_decisions_byte_for_byte", func(t *testing.T) {
		endless := "with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n"
		folder := recordedFolder(t, `"insert into done (id) select :id where (`+endless+`) > 0"`)
		run := startSemel(t, folder)
		awaitWriter(t, folder)
		if err := run.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		file := recordedFile(t, run)
		_ = run.cmd.Process.Kill()
		run.end(t)
		f := readRecording(t, file)
		result, err := f.Replay(nil)
		if err != nil || result.Differs != nil || result.Panic != "" || result.Broken != nil {
			t.Fatalf("%v, %+v", err, result)
		}
		if f.Consumer != "billing" || result.Steps < 3 || result.Bytes == 0 || result.Load.Flying == 0 {
			t.Errorf("consumer %q, %+v", f.Consumer, result)
		}
		t.Logf("%d steps, %d bytes of decisions; %s", result.Steps, result.Bytes, recording.Hands(result.Load, result.Now))
		text, err := os.ReadFile(filepath.Join(folder, filepath.Base(file)))
		if err != nil || strings.Contains(string(text), "secret") {
			t.Errorf("%v; the recording names a message", err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
}

// buildFaulty builds programs with a planted fault: if an environment variable is set, the programs
// commit the transaction of a failed handler. The last result of buildFaulty is the setting of that variable.
func buildFaulty(t *testing.T) (semel, simulate, setting string) {
	t.Helper()
	root, err := mutation.Root()
	if err != nil {
		t.Fatal(err)
	}
	fault, err := mutation.Find(root, "internal/machine/*.go", "(*Machine).handleRan", mutation.Call("do", "m.commit(f)", "Rollback"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := mutation.Plant(root, t.TempDir(), []mutation.Change{fault})
	if err == nil {
		semel, err = tree.Program("./cmd/semel")
	}
	if err == nil {
		simulate, err = tree.Program("./internal/simulator/simulate")
	}
	if err != nil {
		t.Fatal(err)
	}
	return semel, simulate, mutation.Switch(1)
}

func TestABrokenLawIsReplayedFromItsRecording(t *testing.T) {
	t.Run("K14_a_law_that_a_real_process_breaks_is_recorded_by_itself_and_named_by_the_replay", func(t *testing.T) {
		folder := recordedFolder(t, `"insert into done (id) values (:id)", "insert into done (id) values (nullif(:id, :id))"`)
		faulty, simulate, setting := buildFaulty(t)
		command := exec.Command(faulty, "run", "--log-level", "debug")
		command.Env = append(os.Environ(), setting)
		run := startAs(t, folder, command)
		file := recordedFile(t, run)
		_ = run.cmd.Process.Kill()
		run.end(t)
		replay := exec.CommandContext(t.Context(), simulate, file)
		replay.Env = append(os.Environ(), setting)
		out, err := replay.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "breaks law 3: flight ") || !strings.Contains(string(out), "are decided as recorded, byte for byte") {
			t.Errorf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
		result, err := readRecording(t, file).Replay(nil)
		if err != nil || result.Differs == nil || !strings.HasPrefix(result.Differs.Recorded[0], `{"action":"Commit"`) || !strings.HasPrefix(result.Differs.Replay[0], `{"action":"Rollback"`) {
			t.Errorf("%v; the machine without the fault decides %+v", err, result.Differs)
		}
	})
}
