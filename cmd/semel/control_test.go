package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// appendTo appends lines to the source file in folder.
func appendTo(t *testing.T, folder, lines string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(folder, "in.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(lines); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestARunIsPausedAndResumed(t *testing.T) {
	t.Run("I0_a_process_that_runs_takes_nothing_while_it_is_paused_and_goes_on_where_it_was", func(t *testing.T) {
		folder := folderWith(t, `"insert into done values (:id)"`)
		run := startSemel(t, folder, "-o", "json")
		run.await(t, "duplicate") // wait for the duplicate in the second line; the first line was applied earlier
		output(t, folder, "semel", "consumers", "pause", "--all", "--because", "the disk is full", "--as", "ann")
		run.await(t, "paused: no new messages are fetched")
		appendTo(t, folder, `{"id":"p2"}`+"\n"+`{"id":"p2"}`+"\n")
		// A second process finds the consumer paused before the process fetches messages. SIGTERM stops the second
		// process.
		other := startSemel(t, folder, "-o", "json")
		other.await(t, `"by":"ann: the disk is full"`)
		if err := other.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := other.end(t); code != 0 || other.counts(t).Deliveries != 0 {
			t.Errorf("the second process ends with %d, %+v", code, other.counts(t))
		}
		if n := strings.TrimSpace(string(output(t, folder, "sqlite", "shop.db", "select count(*) from done"))); n != "1" {
			t.Errorf("%s effects while it is paused", n)
		}
		output(t, folder, "semel", "consumers", "resume", "--all", "--because", "there is room")
		run.await(t, "resumed: messages are fetched again")
		run.await(t, "duplicate")
		if err := run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := run.end(t); code != 0 || run.counts(t).Applied != 2 {
			t.Errorf("it ends with %d, %+v", code, run.counts(t))
		}
	})
}
