//go:build unix

package postgres

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
)

const leased = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}", listen: "${DATABASE_URL}"}, migrate: true}}
sources: {orders: {file: {path: orders.jsonl, format: cloudevents, follow: true}}}
consumers:
  orders:
    from: orders
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    inbox: {lease: 3s, poll: 100ms}
    handler: {http: {url: "%s", timeout: 2500ms}}
`

func orderLines(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"%d","source":"shop","type":"order.placed","data":{"n":%d}}`+"\n", i, i)
	}
	return lines.String()
}

// endpoint is an HTTP endpoint that counts the calls of each message and records their idempotency keys.
type endpoint struct {
	*httptest.Server
	arrived chan string

	mu    sync.Mutex // mu guards the fields below
	calls map[string]int
	keys  map[string]bool
}

func newEndpoint(t *testing.T, answer http.HandlerFunc) *endpoint {
	e := &endpoint{arrived: make(chan string, 1<<12), calls: map[string]int{}, keys: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("ce-id")
		e.mu.Lock()
		e.calls[id]++
		e.keys[r.Header.Get("Idempotency-Key")] = true
		e.mu.Unlock()
		e.arrived <- id
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

// nextCall waits for the next call and returns the id of its message.
func (e *endpoint) nextCall(t *testing.T) string {
	t.Helper()
	select {
	case id := <-e.arrived:
		return id
	case <-time.After(time.Minute):
		t.Fatal("nothing is called for a minute")
	}
	panic("unreachable")
}

// waitCompleted waits until n inbox rows are completed.
func (s fixture) waitCompleted(t *testing.T, n int) {
	t.Helper()
	s.waitCount(t, n, "rows are completed", "select count(*) from semel_inbox where state = 'COMPLETED'")
}

func (s fixture) waitCount(t *testing.T, n int, what, query string) {
	t.Helper()
	for began := time.Now(); ; {
		have := queryOne[int](t, s.dsn, query)
		switch {
		case have == n:
			return
		case time.Since(began) > time.Minute:
			t.Fatalf("%d of %d %s after a minute", have, n, what)
		}
	}
}

// stopProcess sends SIGTERM to a process, and checks that the process ends successfully.
func stopProcess(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("%v: %s", err, process.Stderr)
	}
}

func TestAnEndpointThatIsCalledByAFleet(t *testing.T) {
	t.Run("B11_law_2_two_processes_call_once_for_each_message_and_hold_no_transaction", func(t *testing.T) {
		const messages, workers = 300, 16
		held := make(chan bool)
		e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		})
		s := example(t, services.Postgres(t))
		// With these settings, no call times out and no claim is taken over while the test delays the response, even on
		// a slow machine.
		patient := strings.NewReplacer("lease: 3s", "lease: 40s", "timeout: 2500ms", "timeout: 30s").Replace(leased)
		s.write(t, "leased.yaml", fmt.Sprintf(patient, e.URL))
		s.write(t, "orders.jsonl", orderLines(messages))
		first, _ := s.startCommand(t, "run", "--config", "leased.yaml")
		e.nextCall(t)
		// While the test delays the responses, other messages are received and claimed, each in a short transaction. If
		// a call ran in a transaction, this transaction would be open for as long as the test delays the responses.
		open := func() int {
			return queryOne[int](t, s.dsn, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'")
		}
		for began := time.Now(); open() != 0; {
			if time.Since(began) > time.Minute {
				t.Fatalf("%d transactions are open while calls run", open())
			}
		}
		second, _ := s.startCommand(t, "run", "--config", "leased.yaml")
		for range workers { // the first process has one call for each worker, so the next call comes from the second process
			e.nextCall(t)
		}
		close(held)
		s.waitCompleted(t, messages)
		stopProcess(t, first)
		stopProcess(t, second)
		for id, n := range e.calls {
			if n != 1 {
				t.Errorf("message %s: %d calls", id, n)
			}
		}
		if len(e.calls) != messages || len(e.keys) != messages {
			t.Errorf("%d messages under %d keys", len(e.calls), len(e.keys))
		}
	})
}

func TestACallerThatIsFrozenInItsCall(t *testing.T) {
	t.Run("B11_law_5_trap_T1_trap_T2_its_late_answer_changes_nothing_and_the_key_was_the_same", func(t *testing.T) {
		frozen, calls := make(chan bool), atomic.Int64{}
		e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
			if calls.Add(1) > 1 {
				return
			}
			select {
			case <-frozen:
			case <-r.Context().Done():
			}
		})
		s := example(t, services.Postgres(t))
		s.write(t, "leased.yaml", fmt.Sprintf(leased, e.URL))
		s.write(t, "orders.jsonl", orderLines(1))
		first, _ := s.startCommand(t, "run", "--config", "leased.yaml")
		e.nextCall(t)
		if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		second, _ := s.startCommand(t, "run", "--config", "leased.yaml")
		e.nextCall(t) // the next call comes after the lease has ended
		s.waitCompleted(t, 1)
		before := queryOne[string](t, s.dsn, "select to_jsonb(i)::text from semel_inbox i")
		close(frozen)
		if err := first.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		stopProcess(t, first)
		stopProcess(t, second)
		if after := queryOne[string](t, s.dsn, "select to_jsonb(i)::text from semel_inbox i"); after != before {
			t.Errorf("the late answer changed the row from %s to %s", before, after)
		}
		if e.calls["0"] != 2 || len(e.keys) != 1 {
			t.Errorf("%d calls under %d keys", e.calls["0"], len(e.keys))
		}
	})
}
