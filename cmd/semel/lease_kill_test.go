package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leasedPolicy is a policy whose handler calls the URL %s. Leases take three seconds. The source is a
// followed file.
const leasedPolicy = `version: 1
stores: {shop: {sqlite: {path: shop.db}}}
sources: {orders: {file: {path: in.jsonl, format: cloudevents, follow: true}}}
consumers:
  billing:
    from: orders
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    workers: 4
    inbox: {lease: 3s, poll: 50ms, max_crashes: 100}
    retry: {max_attempts: 100, initial_delay: 10ms, max_delay: 100ms}
    handler: {http: {url: "%s", timeout: 2500ms}}
`

// leasedFolder returns a folder with leasedPolicy for url, and a source file with n messages.
func leasedFolder(t *testing.T, url string, n int) string {
	t.Helper()
	folder := t.TempDir()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"o-%d","source":"shop","type":"order.placed","data":{"order":%d}}`+"\n", i, i)
	}
	for name, text := range map[string]string{"semel.yaml": fmt.Sprintf(leasedPolicy, url), "in.jsonl": lines.String()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, folder, "semel", "migrate", "up")
	return folder
}

func (e *endpoint) waitForCall(t *testing.T) receivedCall {
	t.Helper()
	select {
	case c := <-e.callArrivals:
		return c
	case <-time.After(reactionTimeout):
		t.Fatalf("nothing is called for %v", reactionTimeout)
	}
	panic("unreachable")
}

// stopWith sends a signal and waits until the process has ended.
func (r *backgroundRun) stopWith(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	r.end(t)
}

func TestAProcessThatIsKilledInItsCalls(t *testing.T) {
	t.Run("B7_B11_E3_what_was_called_is_called_again_under_the_same_key_and_only_after_a_kill", func(t *testing.T) {
		const messages, kills = 60, 6
		takes := 20 * time.Millisecond
		e := newEndpoint(func(w http.ResponseWriter, r *http.Request, _ []byte, _ int) {
			select {
			case <-r.Context().Done(): // the calling process was killed
			case <-time.After(takes):
			}
			w.WriteHeader(http.StatusNoContent)
		})
		defer e.Close()
		folder := leasedFolder(t, e.URL, messages)
		keys, ids, calls := map[string]string{}, map[string]bool{}, map[string]int{}
		round := map[string]bool{} // the ids of the calls that the current process has made
		note := func(c receivedCall) {
			switch known := keys[c.id]; {
			case known == "" && ids[c.key]:
				t.Errorf("%s has the key of another", c.id)
			case known != "" && known != c.key:
				t.Errorf("%s has another key than before", c.id)
			case round[c.id]:
				t.Errorf("%s was called for twice by one process", c.id)
			}
			keys[c.id], ids[c.key], round[c.id] = c.key, true, true
			calls[c.id]++
		}
		for range kills {
			run := startSemel(t, folder)
			for range 5 {
				note(e.waitForCall(t))
			}
			run.stopWith(t, syscall.SIGKILL)
			e.CloseClientConnections() // CloseClientConnections returns after all calls in progress have arrived
			for len(e.callArrivals) > 0 {
				note(<-e.callArrivals)
			}
			clear(round)
		}
		run := startSemel(t, folder)
		for len(calls) < messages || hasPendingRows(t, folder) {
			if len(e.callArrivals) > 0 || len(calls) < messages {
				note(e.waitForCall(t))
			}
		}
		run.stopWith(t, syscall.SIGTERM)
		for len(e.callArrivals) > 0 {
			note(<-e.callArrivals)
		}
		again := 0
		for _, n := range calls {
			again += n - 1
		}
		if again > kills*4 {
			t.Errorf("%d calls were made again after %d kills of 4 workers", again, kills)
		}
		if got := string(output(t, folder, "sqlite", "shop.db", "select state, count(*) from semel_inbox group by state")); got != fmt.Sprintf("COMPLETED|%d\n", messages) {
			t.Errorf("the rows: %s", got)
		}
		t.Logf("%d messages, %d kills, %d calls again", len(calls), kills, again)
	})
}

// hasPendingRows reports whether the inbox has unfinished rows.
func hasPendingRows(t *testing.T, folder string) bool {
	t.Helper()
	return string(output(t, folder, "sqlite", "shop.db", "select count(*) from semel_inbox where state <> 'COMPLETED'")) != "0\n"
}

func TestAStopLetsCallsEnd(t *testing.T) {
	t.Run("case_10_a_call_that_runs_at_a_stop_is_awaited_and_made_once", func(t *testing.T) {
		held := make(chan bool)
		e := newEndpoint(func(w http.ResponseWriter, r *http.Request, _ []byte, _ int) {
			select {
			case <-held:
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusOK)
		})
		defer e.Close()
		folder := leasedFolder(t, e.URL, 1)
		run := startSemel(t, folder)
		e.waitForCall(t)
		if err := run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		close(held)
		if code := run.end(t); code != 0 || hasPendingRows(t, folder) || len(e.receivedCalls()) != 1 {
			t.Errorf("exit code %d, %d calls", code, len(e.receivedCalls()))
		}
	})
	t.Run("case_10_one_that_is_cut_by_a_stop_is_no_attempt_and_made_again", func(t *testing.T) {
		e := newEndpoint(func(w http.ResponseWriter, r *http.Request, _ []byte, before int) {
			if before == 0 {
				<-r.Context().Done()
			}
		})
		defer e.Close()
		folder := leasedFolder(t, e.URL, 1)
		replace(t, folder, "semel.yaml", func(policy string) string {
			return strings.Replace(policy, "    workers: 4\n", "    workers: 4\n    drain: 100ms\n", 1)
		})
		run := startSemel(t, folder)
		first := e.waitForCall(t)
		run.stopWith(t, syscall.SIGTERM)
		run = startSemel(t, folder)
		second := e.waitForCall(t)
		for hasPendingRows(t, folder) {
		}
		run.stopWith(t, syscall.SIGTERM)
		if first != second || second.attempt != "1" || len(e.receivedCalls()) != 2 {
			t.Errorf("%+v, then %+v, of %d", first, second, len(e.receivedCalls()))
		}
	})
}
