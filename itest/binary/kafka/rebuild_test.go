//go:build unix

package kafka

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
)

// balanceConsumer returns a consumer that computes balances. The computed balance depends on the order of an
// account's payments.
func (s fixture) balanceConsumer(name, table string) string {
	generation, value, key := "", "", ""
	if table == "balances" {
		generation, value, key = "generation, ", ":generation, ", "generation, "
	}
	return fmt.Sprintf(`
  %s:
    from: payments
    store: shop
    identity: {id: id, source: source}
    replay: {allowed: true}
    timeout: 2s
    handler:
      sql:
        params: {payment: id, account: key}
        statements:
          - sql: insert into %s (%saccount, n, chain) values (%s:account, 1, md5(:payment)) on conflict (%saccount) do update set n = %s.n + 1, chain = md5(%s.chain || :payment)
            rows: 1
`, s.name(name), table, generation, value, key, table, table)
}

// rebuildFixture is a test topic and database whose balances are rebuilt.
type rebuildFixture struct {
	fixture
	t    *testing.T
	sent atomic.Int64
}

func newRebuilding(t *testing.T) *rebuildFixture {
	r := &rebuildFixture{fixture: newFixture(t, 3), t: t}
	services.Exec(t, r.dsn, `create table balances (generation bigint not null, account text not null, n bigint not null, chain text not null, primary key (generation, account));
		create table expected (account text primary key, n bigint not null, chain text not null)`)
	r.policy(t, "p.yaml", "", r.balanceConsumer("billing", "balances"), r.balanceConsumer("reference", "expected"))
	return r
}

// send produces n further payments.
func (r *rebuildFixture) send(n int) {
	r.t.Helper()
	first := int(r.sent.Load()) + 1
	r.produce(r.t, r.makePayments(first, first+n-1)...)
	r.sent.Store(int64(first + n - 1))
}

// sendOn produces payments in the background until stop is called.
func (r *rebuildFixture) sendOn() (stop func()) {
	var sending sync.WaitGroup
	end := make(chan struct{})
	sending.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				r.send(10)
			}
		}
	})
	return sync.OnceFunc(func() { close(end); sending.Wait() })
}

// begin starts a command in the background and writes its log to a file.
func (r *rebuildFixture) begin(log string, args ...string) *exec.Cmd {
	r.t.Helper()
	args = append(args, "--config", "p.yaml")
	if args[0] == "run" {
		args = append(args, "--consumer", r.name("billing"))
	}
	cmd := r.command(args...)
	out, err := os.OpenFile(filepath.Join(r.dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	_ = out.Close()
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if text, err := os.ReadFile(filepath.Join(r.dir, log)); err == nil && r.t.Failed() {
			r.t.Logf("%s:\n%s", log, text[max(0, len(text)-4000):])
		}
	})
	return cmd
}

// call runs a command, and returns its output and its exit code.
func (r *rebuildFixture) call(args ...string) (string, int) {
	r.t.Helper()
	cmd := r.command(append(args, "--config", "p.yaml", "--consumer", r.name("billing"))...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// countApplied returns how many payments took effect in a generation.
func (r *rebuildFixture) countApplied(generation int) (n int64) {
	r.t.Helper()
	query(r.t, r.dsn, fmt.Sprintf(`select coalesce(sum(n), 0)::bigint from balances where generation = %d`, generation), &n)
	return n
}

func (r *rebuildFixture) signal(cmd *exec.Cmd, s syscall.Signal) {
	r.t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

func TestARebuildBesideLiveTraffic(t *testing.T) {
	r := newRebuilding(t)
	r.send(500)
	if out, err := r.command("migrate", "up", "--config", "p.yaml").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a, b := r.begin("a.log", "run"), r.begin("b.log", "run")
	waitUntil(t, "the live consumer", func() bool { return r.countApplied(0) == 500 })
	stop := r.sendOn()
	defer stop()
	first := r.begin("rebuild.log", "rebuild", "start", r.name("billing"), "--rate", "400", "--because", "a new column")
	waitUntil(t, "the rebuild", func() bool { return r.countApplied(1) > 300 })
	r.signal(first, syscall.SIGKILL)
	_ = first.Wait()
	t.Run("G2_a_rebuild_that_nobody_runs_is_not_switched_to", func(t *testing.T) {
		var out string
		waitUntil(t, "the end of its lease", func() bool {
			code := 0
			out, code = r.call("rebuild", "switch", "1", "--timeout", "1s", "--because", "x")
			if code == 0 {
				t.Fatalf("it is switched to: %s", out)
			}
			return strings.Contains(out, "no process runs")
		})
		if n := r.countApplied(0); n < 500 {
			t.Errorf("%d", n)
		}
	})
	second := r.begin("rebuild.log", "rebuild", "start", r.name("billing"), "--resume", "1", "--because", "it was killed")
	waitUntil(t, "the rebuild again", func() bool { return r.countApplied(1) > r.countApplied(0)*9/10 })
	r.signal(b, syscall.SIGSTOP)
	waitUntil(t, "the switch", func() bool {
		out, code := r.call("rebuild", "switch", "1", "--because", "it has the column")
		t.Logf("switch: %d %s", code, out)
		return code == 0
	})
	at := r.countApplied(0)
	r.signal(b, syscall.SIGCONT)
	waitUntil(t, "the live consumer in the new generation", func() bool { return r.countApplied(1) > at+200 })
	stop()
	r.send(100)
	total := r.sent.Load()
	waitUntil(t, "all of it", func() bool { return r.countApplied(1) >= total })
	t.Run("law_12_after_the_switch_nobody_works_in_the_old_generation_not_even_who_was_frozen", func(t *testing.T) {
		if now := r.countApplied(0); now != at {
			t.Errorf("%d took effect in the old generation, and %d when it was switched", now, at)
		}
	})
	waitUntil(t, "the end of the rebuild", func() bool {
		out, _ := r.call("rebuild", "status")
		return strings.Contains(out, "done")
	})
	_ = second.Wait()
	r.compareBalances(t)
	for _, cmd := range []*exec.Cmd{a, b} {
		r.signal(cmd, syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	r.expectDropped(t)
}

// compareBalances compares the balances with the balances of a consumer that was never rebuilt.
func (r *rebuildFixture) compareBalances(t *testing.T) {
	t.Run("G2_it_ends_byte_equal_to_a_projection_that_was_never_switched", func(t *testing.T) {
		cmd := r.command("run", "--config", "p.yaml", "--consumer", r.name("reference"), "--exit-when-idle", "1s")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var differ, active int64
		query(t, r.dsn, `select count(*) from expected e full join (select * from balances b where generation = (
			select active from semel_generations where consumer = '`+r.name("billing")+`')) b using (account) where (e.n, e.chain) is distinct from (b.n, b.chain)`, &differ)
		query(t, r.dsn, `select active from semel_generations where consumer = '`+r.name("billing")+`'`, &active)
		if differ != 0 || active != 1 {
			t.Errorf("%d accounts differ; generation %d is active", differ, active)
		}
		if n := r.countApplied(1); n != r.sent.Load() {
			t.Errorf("%d payments took effect, of %d", n, r.sent.Load())
		}
	})
}

func (r *rebuildFixture) expectDropped(t *testing.T) {
	t.Run("G2_a_drop_removes_the_markers_of_the_old_generation_alone", func(t *testing.T) {
		if out, code := r.call("rebuild", "drop", "1", "--because", "all is well"); code != 0 {
			t.Fatalf("%d: %s", code, out)
		}
		markers := func(name string) (n int64) {
			query(t, r.dsn, `select count(*) from semel_markers m join semel_scopes s on s.number = m.scope where s.consumer = '`+name+`'`, &n)
			return n
		}
		if old, now := markers(r.name("billing")), markers(r.name("billing")+"@1"); old != 0 || now != r.sent.Load() {
			t.Errorf("%d markers of the old generation, %d of the new one", old, now)
		}
	})
}
