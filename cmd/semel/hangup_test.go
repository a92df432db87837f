package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// slowStatement is a SQL statement that takes longer than the drain of a shutdown.
const slowStatement = `"insert into done (id) select :id where (with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n) > 0"`

func TestATerminalThatGoesAwayDrains(t *testing.T) {
	t.Run("also_when_the_shell_and_the_kernel_both_say_so", func(t *testing.T) {
		folder := folderWith(t, slowStatement)
		edit(t, filepath.Join(folder, "semel.yaml"), "drain: 20s", "drain: 1s")
		run := startSemel(t, folder, "-o", "json")
		awaitWriter(t, folder)
		hangUp(t, run)
		run.await(t, "stopping")
		hangUp(t, run)
		if code := run.end(t); code != 0 {
			t.Errorf("exit code %d, not 0", code)
		}
		if c := run.counts(t); c.Deliveries == 0 || c.InFlight != c.Deliveries {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a_process_that_was_told_to_ignore_it_goes_on", func(t *testing.T) {
		folder := folderWith(t, `"insert into done (id) values (:id)"`)
		run := startAs(t, folder, exec.Command("nohup", "semel", "run", "--log-level", "debug", "-o", "json"))
		run.await(t, `"msg":"duplicate"`)
		hangUp(t, run)
		deliver(t, folder, "p2")
		run.await(t, `"msg":"duplicate"`)
		if err := run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := run.end(t); code != 0 {
			t.Errorf("exit code %d, not 0", code)
		}
		if c := run.counts(t); c.Applied != 2 {
			t.Errorf("%+v", c)
		}
	})
}

func hangUp(t *testing.T, r *backgroundRun) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// deliver appends the same message twice to the followed source file.
func deliver(t *testing.T, folder, id string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(folder, "in.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "{\"id\":%q}\n{\"id\":%q}\n", id, id); err != nil {
		t.Fatal(err)
	}
}
