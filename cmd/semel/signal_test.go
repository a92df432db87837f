package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// backgroundRun is a `semel run` in the background. Tests can wait for lines of its log.
type backgroundRun struct {
	cmd     *exec.Cmd
	log     *bufio.Scanner
	summary bytes.Buffer
}

func startSemel(t *testing.T, folder string, args ...string) *backgroundRun {
	t.Helper()
	return startAs(t, folder, exec.Command("semel", append([]string{"run", "--log-level", "debug"}, args...)...))
}

// startAs starts a command that runs semel in folder.
func startAs(t *testing.T, folder string, cmd *exec.Cmd) *backgroundRun {
	t.Helper()
	// Under nohup, the test process ignores SIGHUP, and a child process would ignore SIGHUP too. A child process
	// does not ignore a signal that its parent process handles.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	r := &backgroundRun{cmd: cmd}
	cmd.Dir, cmd.Stdout = folder, &r.summary
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	r.log = bufio.NewScanner(stderr)
	return r
}

// await reads the log up to the first line that contains the given text.
func (r *backgroundRun) await(t *testing.T, text string) {
	t.Helper()
	// If no line contains the text, the timer guard kills the process, which ends the log.
	guard := time.AfterFunc(reactionTimeout, func() { _ = r.cmd.Process.Kill() })
	defer guard.Stop()
	var seen []string
	for r.log.Scan() {
		seen = append(seen, r.log.Text())
		if strings.Contains(r.log.Text(), text) {
			return
		}
	}
	t.Fatalf("%q is not in the log:\n%s", text, strings.Join(seen, "\n"))
}

// end waits until the process has ended and returns the exit code.
func (r *backgroundRun) end(t *testing.T) int {
	t.Helper()
	for r.log.Scan() {
		t.Log(r.log.Text())
	}
	_ = r.cmd.Wait() // the caller checks the exit code
	return r.cmd.ProcessState.ExitCode()
}

// The method counts returns the counts in the summary of a run that has ended.
func (r *backgroundRun) counts(t *testing.T) semel.Counts {
	t.Helper()
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(r.summary.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	return summary.Consumers["billing"]
}

// folderWith returns a folder with a policy whose handler runs the statement, and a source file that the
// consumer follows.
func folderWith(t *testing.T, statement string) string {
	t.Helper()
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("semel.yaml", `version: 1
stores: {shop: {sqlite: {path: shop.db}, setup: setup.sql}}
sources: {payments: {file: {path: in.jsonl, format: json, follow: true}}}
consumers:
  billing:
    from: payments
    store: shop
    identity: {id: "body:/id"}
    drain: 20s
    handler: {sql: {params: {id: "body:/id"}, statements: [`+statement+`]}}
`)
	write("setup.sql", `create table done (id text not null) strict;`)
	write("in.jsonl", `{"id":"p1"}`+"\n"+`{"id":"p1"}`+"\n")
	output(t, folder, "semel", "migrate", "up")
	return folder
}

func TestTheFirstSignalDrainsAndExitsWithZero(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		folder := folderWith(t, `"insert into done (id) values (:id)"`)
		run := startSemel(t, folder)
		run.await(t, `"msg":"duplicate"`)
		if err := run.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := run.end(t); code != 0 {
			t.Errorf("%v: exit code %d, not 0", signal, code)
		}
		if got := output(t, folder, "sqlite", "shop.db", "select id from done"); string(got) != "p1\n" {
			t.Errorf("%v: the effects are %q", signal, got)
		}
	}
}

func TestTheSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	endless := "with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n"
	folder := folderWith(t, `"insert into done (id) select :id where (`+endless+`) > 0"`)
	run := startSemel(t, folder)
	awaitWriter(t, folder)
	// Send two different signals, because a second signal of the same kind is lost while the first is
	// pending.
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := run.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	if code := run.end(t); code != 130 {
		t.Errorf("exit code %d, not 130", code)
	}
	if got := output(t, folder, "sqlite", "shop.db", "select count(*) from done"); string(got) != "0\n" {
		t.Errorf("%s effects of a handler that did not end", got)
	}
}

// awaitWriter waits until another process keeps a write transaction open. The transaction that awaitWriter
// waits for belongs to a running handler. Short write transactions, for instance when tables are created, do
// not count.
func awaitWriter(t *testing.T, folder string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "shop.db")+"?_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for t.Context().Err() == nil {
		if _, err := db.ExecContext(t.Context(), "begin immediate"); err != nil {
			return
		}
		if _, err := db.ExecContext(t.Context(), "rollback"); err != nil {
			t.Fatal(err)
		}
	}
}

// lockedBy opens the folder's database and takes the write lock.
func lockedBy(t *testing.T, folder string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "begin immediate"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(t.Context(), "rollback"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

// readOnly makes SQLite treat a database as read-only, even for root. readOnly writes an unknown format
// version to the header of the file.
func readOnly(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{3}, 18); err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseThatCannotWorkIsWaitedForAndNothingIsSettled(t *testing.T) {
	t.Run("trap_140_read_only", func(t *testing.T) {
		folder := folderWith(t, `"insert into done (id) values (:id)"`)
		readOnly(t, filepath.Join(folder, "shop.db"))
		run := startSemel(t, folder, "-o", "json")
		run.await(t, "nothing is settled")
		if err := run.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if code := run.end(t); code != 0 {
			t.Errorf("exit code %d, not 0", code)
		}
		if c := run.counts(t); c.InFlight != c.Deliveries || c.Applied != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("locked_by_another_process", func(t *testing.T) {
		folder := folderWith(t, `"insert into done (id) values (:id)"`)
		stopFollowing(t, folder)
		unlock := lockedBy(t, folder)
		run := startSemel(t, folder, "-o", "json")
		run.await(t, "nothing is settled")
		unlock()
		if code := run.end(t); code != 0 {
			t.Errorf("exit code %d, not 0", code)
		}
		if c := run.counts(t); c.Applied != 1 || c.Duplicates != 1 {
			t.Errorf("%+v", c)
		}
	})
}
