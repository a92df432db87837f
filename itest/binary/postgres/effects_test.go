//go:build unix

package postgres

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/itest/services"
)

const answering = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}", listen: "${DATABASE_URL}"}, migrate: true, setup: accounts.sql}}
sources: {orders: {file: {path: orders.jsonl, format: cloudevents, follow: true}}}
consumers:
  orders:
    from: orders
    store: shop
    strategy: %s
    effect: {kind: ledger, says: "a second one books it twice"}
    retention: forever
    identity: {id: id, source: source}
    timeout: 3s
    inbox: {lease: 3s, poll: 100ms, max_crashes: 100}
    retry: {max_attempts: 1000, initial_delay: 10ms, max_delay: 100ms}
    handler:
      http:
        url: "%s"
        timeout: 2500ms
        %s
        effects:
          statements:
            book: {sql: "update accounts set balance = balance + :amount where id = :account", params: {account: text, amount: decimal}, rows: 1}
            note: {sql: "insert into notes values (:id, :doubt, :whole, :json)", params: {id: text, doubt: boolean, whole: integer, json: json}}
`

// ways has the two ways to call an endpoint: with a claim for each message, or without claims, because the endpoint
// changes nothing itself.
var ways = map[string]func(url string) string{
	"lease": func(url string) string {
		return fmt.Sprintf(answering, "lease\n    alerts: {pending_age: 60s}", url, "pure: false")
	},
	"pure": func(url string) string { return fmt.Sprintf(answering, "marker", url, "pure: true") },
}

const accounts = `create table accounts (id text primary key, balance numeric not null);
	insert into accounts values ('a', 0); create table notes (id text, doubt boolean, whole bigint, json jsonb)`

// serveEffects is an endpoint that answers each call with two effects: a booking of 0.01, and a note with the
// message's id.
func serveEffects(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.semel.effects+json")
	_, _ = fmt.Fprintf(w, `{"effects":[{"statement":"book","params":{"account":"a","amount":"0.01"}},{"statement":"note","params":{"id":%q,"doubt":false,"whole":9007199254740993,"json":{"a": 1.50}}}]}`, r.Header.Get("Ce-Id"))
}

// newBankFixture returns a test with the policy for an endpoint, and a database with two accounts.
func newBankFixture(t *testing.T, policy string, messages int) fixture {
	t.Helper()
	s := example(t, services.Postgres(t))
	s.write(t, "answering.yaml", policy)
	s.write(t, "accounts.sql", accounts)
	s.write(t, "orders.jsonl", orderLines(messages))
	return s
}

// expectBooked fails unless each of n messages has taken effect once.
func (s fixture) expectBooked(t *testing.T, n int) {
	t.Helper()
	got := queryOne[string](t, s.dsn, "select concat_ws(' ', (select (balance * 100)::bigint from accounts), (select count(*) from notes), (select count(distinct id) from notes where not doubt and whole = 9007199254740993))")
	if want := fmt.Sprintf("%d %d %d", n, n, n); got != want {
		t.Errorf("booked are %s, and should be %s", got, want)
	}
}

// waitApplied waits until n messages have a marker "applied".
func (s fixture) waitApplied(t *testing.T, n int) {
	t.Helper()
	s.waitCount(t, n, "messages are marked as applied", "select count(*) from semel_markers where outcome = 1")
}

func TestAnEndpointWhoseAnswersAreAppliedByAFleet(t *testing.T) {
	for name, policy := range ways {
		t.Run(name, func(t *testing.T) { answersOfAFleet(t, policy) })
	}
}

func answersOfAFleet(t *testing.T, policy func(url string) string) {
	t.Run("K10_case_16_law_12_processes_that_are_killed_apply_each_answer_once", func(t *testing.T) {
		const messages = 400
		e := newEndpoint(t, serveEffects)
		s := newBankFixture(t, policy(e.URL), messages)
		other, _ := s.startCommand(t, "run", "--config", "answering.yaml")
		for range 4 {
			process, _ := s.startCommand(t, "run", "--config", "answering.yaml")
			for range 40 {
				e.nextCall(t)
			}
			_ = process.Process.Kill()
			_ = process.Wait()
		}
		s.waitApplied(t, messages)
		stopProcess(t, other)
		s.expectBooked(t, messages)
	})
	t.Run("K10_law_5_a_process_that_is_frozen_with_an_answer_changes_nothing_when_it_goes_on", func(t *testing.T) {
		frozen, calls := make(chan bool), atomic.Int64{}
		e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				select {
				case <-frozen:
				case <-r.Context().Done():
				}
			}
			serveEffects(w, r)
		})
		s := newBankFixture(t, policy(e.URL), 1)
		first, _ := s.startCommand(t, "run", "--config", "answering.yaml")
		e.nextCall(t)
		if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		close(frozen) // the answer has arrived, but the frozen process does not read it
		second, _ := s.startCommand(t, "run", "--config", "answering.yaml")
		e.nextCall(t) // the second call comes after the lease has ended
		s.waitApplied(t, 1)
		if err := first.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		stopProcess(t, first)
		stopProcess(t, second)
		s.expectBooked(t, 1)
		if e.calls["0"] != 2 || len(e.keys) != 1 {
			t.Errorf("%d calls under %d keys", e.calls["0"], len(e.keys))
		}
	})
	t.Run("K10_while_a_row_is_locked_the_same_answer_is_applied_again_and_nobody_is_called", func(t *testing.T) {
		e := newEndpoint(t, serveEffects)
		s := newBankFixture(t, policy(e.URL), 1)
		services.Exec(t, s.dsn, accounts)
		s.write(t, "answering.yaml", strings.Replace(policy(e.URL), ", setup: accounts.sql", "", 1))
		connection, err := pgx.Connect(t.Context(), s.dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close(t.Context()) }()
		if _, err := connection.Exec(t.Context(), "begin; update accounts set balance = balance"); err != nil {
			t.Fatal(err)
		}
		process, _ := s.startCommand(t, "run", "--config", "answering.yaml")
		e.nextCall(t)
		waiting := "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
		for began, seen := time.Now(), 0; seen < 2; { // the process waits for the lock, gives up, and waits again
			for queryOne[int](t, s.dsn, waiting) != 1 && time.Since(began) < time.Minute {
			}
			for queryOne[int](t, s.dsn, waiting) != 0 && time.Since(began) < time.Minute {
			}
			seen++
		}
		if _, err := connection.Exec(t.Context(), "commit"); err != nil {
			t.Fatal(err)
		}
		s.waitApplied(t, 1)
		stopProcess(t, process)
		s.expectBooked(t, 1)
		if e.calls["0"] != 1 {
			t.Errorf("it was called for %d times", e.calls["0"])
		}
	})
}
