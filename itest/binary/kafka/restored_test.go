//go:build unix

package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
)

// loadFixture is a test topic and database, with payments that are published while the consumer runs.
type loadFixture struct {
	fixture
	t       *testing.T
	log     string // log of the last run
	written int
}

// A setting of the source: a short session timeout.
const restoring = "session_timeout: 6s"

func newLoaded(t *testing.T) *loadFixture {
	l := &loadFixture{fixture: newFixture(t, 4), t: t}
	l.policy(t, "semel.yaml", restoring, l.consumer("billing", "payments", "batch: {max_size: 10}\n    workers: 1"))
	return l
}

// start starts the consumer, which runs until end is called.
func (l *loadFixture) start() *exec.Cmd {
	l.t.Helper()
	cmd := l.command("run", "--config", "semel.yaml")
	log, err := os.Create(filepath.Join(l.t.TempDir(), "log"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.log = log.Name()
	cmd.Stdout, cmd.Stderr = log, log
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// end sends a signal to a run and waits until the run has ended.
func (l *loadFixture) end(cmd *exec.Cmd, by syscall.Signal) {
	l.t.Helper()
	if err := cmd.Process.Signal(by); err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Wait(); by != syscall.SIGKILL && err != nil {
		l.t.Fatalf("%v: %s", err, l.said())
	}
}

func (l *loadFixture) said() string {
	text, err := os.ReadFile(l.log)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// publish writes n payments in the background. The returned function waits until all payments are written.
func (l *loadFixture) publish(n int) (wait func()) {
	from := l.written + 1
	l.written += n
	var all sync.WaitGroup
	all.Go(func() {
		for first := from; first < from+n; first += 50 {
			l.produce(l.t, l.makePayments(first, min(first+49, from+n-1))...)
		}
	})
	return all.Wait
}

// waitEntries waits until n payments are in the table of entries.
func (l *loadFixture) waitEntries(n int) {
	l.t.Helper()
	waitUntil(l.t, "entries are there", func() bool {
		all, _ := l.countEntries(l.t, "billing")
		return all >= n
	})
}

// waitCommitted waits until the consumer group has committed the offsets of all records.
func (l *loadFixture) waitCommitted() {
	l.t.Helper()
	waitUntil(l.t, "the group is at the end", func() bool { return l.groupLag(l.t, "billing") == 0 })
}

// call runs a command of the binary and returns its output.
func (l *loadFixture) call(code int, args ...string) (stdout, stderr string) {
	l.t.Helper()
	cmd := l.command(args...)
	return l.wait(cmd, code)
}

func (l *loadFixture) wait(cmd *exec.Cmd, code int) (stdout, stderr string) {
	l.t.Helper()
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("%q ended with %d, not %d: %s%s", cmd.Args, got, code, &out, &log)
	}
	return out.String(), log.String()
}

// runAdvice runs the command that an earlier command printed as advice, as an operator would run it.
func (l *loadFixture) runAdvice(said string) (stdout, stderr string) {
	l.t.Helper()
	line := regexp.MustCompile(`(?m)then set it: (semel consumers positions reset .*)$`).FindStringSubmatch(said)
	if line == nil {
		l.t.Fatalf("no command is printed: %s", said)
	}
	cmd := l.command()
	shell := exec.Command("sh", "-c", line[1])
	shell.Dir, shell.Env = cmd.Dir, append(cmd.Env, "PATH="+filepath.Dir(l.binary)+":"+os.Getenv("PATH"))
	return l.wait(shell, 0)
}

// plan is the output of `semel consumers positions plan`.
type plan struct {
	Partitions   []struct{ Standing string }
	Count, Ahead int
	Missing      int64
}

func (l *loadFixture) plan(code int) plan {
	l.t.Helper()
	return l.planBy(code, "--config", "semel.yaml")
}

// planBy runs `semel consumers positions plan` with the given flags and returns the plan.
func (l *loadFixture) planBy(code int, flags ...string) (p plan) {
	l.t.Helper()
	out, _ := l.call(code, append([]string{"consumers", "positions", "plan", "-o", "json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	return p
}

func TestADatabaseThatWasRestored(t *testing.T) {
	t.Run("trap_T110_from_a_backup_under_load_is_noticed_and_set_right_by_the_printed_command", func(t *testing.T) {
		l := newLoaded(t)
		written := l.publish(4000)
		run := l.start()
		l.waitEntries(400)
		waitUntil(t, "the store has a position of each partition", func() bool {
			var n int
			query(t, l.dsn, `select count(*) from semel_positions where lane like 'kafka:%/%@%' and "offset" > 0`, &n)
			return n == 4
		})
		backup := filepath.Join(t.TempDir(), "backup")
		services.Dump(t, l.dsn, backup)
		l.end(run, syscall.SIGKILL)
		run = l.start()
		l.publish(1000)()
		written()
		l.waitCommitted()
		if p := l.plan(0); p.Ahead != 0 || p.Count != 4 {
			t.Errorf("while it runs the plan is %+v", p)
		}
		l.end(run, syscall.SIGTERM)
		l.wantOnce(t, "billing", 5000)

		l.dsn = services.Restored(t, backup)
		kept, _ := l.countEntries(t, "billing")
		if kept < 400 || kept > 4000 {
			t.Fatalf("the backup has %d entries", kept)
		}
		_, said := l.call(1, "run", "--config", "semel.yaml", "--exit-when-idle", "1s")
		if !strings.Contains(said, "the store of consumer "+l.fixture.name("billing")+" is behind group") || !strings.Contains(said, "partition 3: the store is at") {
			t.Errorf("it says: %s", said)
		}
		if now, _ := l.countEntries(t, "billing"); now != kept {
			t.Errorf("of %d entries %d are there after a start that was refused", kept, now)
		}
		p := l.plan(4)
		if p.Ahead != 4 || p.Missing < int64(5000-kept) {
			t.Errorf("%d entries are missing; the plan is %+v", 5000-kept, p)
		}
		if bare := l.planBy(4, l.fixture.name("billing"), "--store", l.dsn, "--brokers", strings.Join(l.brokers, ","), "--topics", l.topic); !reflect.DeepEqual(bare, p) {
			t.Errorf("without a policy the plan is %+v, not %+v", bare, p)
		}
		out, told := l.runAdvice(said)
		if strings.Count(out, ": done\n") != 4 || !strings.Contains(told, "come again") {
			t.Errorf("the command printed %s%s", out, told)
		}
		l.run(t, "semel.yaml", 0)
		l.wantOnce(t, "billing", 5000)
		if p := l.plan(0); p.Ahead != 0 {
			t.Errorf("the plan is %+v", p)
		}
		var who, why string
		query(t, l.dsn, `select who, why from semel_acts where verb = 'reset_positions'`, &who, &why)
		if who == "" || !strings.Contains(why, l.topic+"/3 store ") || !strings.HasSuffix(why, "restored from a backup") {
			t.Errorf("recorded is %q, %q", who, why)
		}
	})
	t.Run("trap_T110_from_a_backup_that_is_older_than_the_first_position_is_filled_from_where_the_group_began", func(t *testing.T) {
		l := newLoaded(t)
		l.call(0, "migrate", "up", "--config", "semel.yaml")
		backup := filepath.Join(t.TempDir(), "backup")
		l.publish(100)()
		run := l.start()
		l.waitEntries(1)
		services.Dump(t, l.dsn, backup)
		l.waitCommitted()
		l.end(run, syscall.SIGTERM)
		l.dsn = services.Restored(t, backup)
		_, said := l.call(1, "run", "--config", "semel.yaml", "--exit-when-idle", "1s")
		l.runAdvice(said)
		l.run(t, "semel.yaml", 0)
		l.wantOnce(t, "billing", 100)
	})
	t.Run("trap_105_in_the_place_of_a_database_in_use_stops_the_running_consumer", func(t *testing.T) {
		l := newLoaded(t)
		run := l.start()
		l.publish(400)()
		l.waitEntries(400)
		l.waitCommitted()
		backup := filepath.Join(t.TempDir(), "backup")
		services.Dump(t, l.dsn, backup)
		restored := services.Restored(t, backup)
		l.publish(400)()
		l.waitCommitted()
		services.Swap(t, l.dsn, restored)
		l.publish(400)()
		var exit *exec.ExitError
		late := time.AfterFunc(patience, func() { _ = run.Process.Kill() })
		if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("the run ended with %v: %s", err, l.said())
		}
		late.Stop()
		said := l.said()
		if !strings.Contains(said, "is behind group") {
			t.Errorf("it says: %s", said)
		}
		out, _ := l.call(0, "consumers", "positions", "reset", "--all", "--config", "semel.yaml", "--dry-run")
		if !strings.Contains(out, ": would be done\n") {
			t.Errorf("a dry run says: %s", out)
		}
		if p := l.plan(4); p.Ahead == 0 || p.Missing < 400 {
			t.Errorf("the plan is %+v", p)
		}
		l.runAdvice(said)
		l.run(t, "semel.yaml", 0)
		l.wantOnce(t, "billing", 1200)
	})
	t.Run("I7_has_the_position_of_its_file_with_it", func(t *testing.T) {
		l := newLoaded(t)
		name := l.fixture.name("billing")
		l.write(t, "semel.yaml", fmt.Sprintf(`version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true}}
sources: {lines: {file: {path: lines.jsonl, format: json, follow: true}}}
consumers:
  %s:
    from: lines
    store: shop
    batch: {max_size: 10}
    workers: 1
    identity: {id: "body:/id"}
    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into entries values ('billing', :id, 1)"]}}
`, name))
		run := l.start()
		l.append(1, 2000)
		l.waitEntries(300)
		backup := filepath.Join(t.TempDir(), "backup")
		services.Dump(t, l.dsn, backup)
		l.end(run, syscall.SIGKILL)
		run = l.start()
		l.append(2001, 2500)
		l.waitEntries(2500)
		l.end(run, syscall.SIGTERM)
		l.dsn = services.Restored(t, backup)
		if kept, _ := l.countEntries(t, "billing"); kept < 300 || kept >= 2500 {
			t.Errorf("the backup has %d entries", kept)
		}
		run = l.start()
		l.append(2501, 2600)
		l.waitEntries(2600)
		l.end(run, syscall.SIGTERM)
		l.wantOnce(t, "billing", 2600)
	})
}

// append adds payments to the file, one line each.
func (l *loadFixture) append(first, last int) {
	l.t.Helper()
	var text strings.Builder
	for n := first; n <= last; n++ {
		fmt.Fprintf(&text, `{"id":"p%d"}`+"\n", n)
	}
	to, err := os.OpenFile(filepath.Join(l.dir, "lines.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = to.WriteString(text.String())
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}
