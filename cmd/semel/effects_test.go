package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
)

const effectsPolicy = `version: 1
stores: {bank: {sqlite: {path: bank.db}, migrate: true, setup: setup.sql}}
sources: {in: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  booking:
    from: in
    store: bank
    strategy: lease
    identity: {id: id}
    alerts: {pending_age: 60s}
    retry: {max_attempts: 3, initial_delay: 1ms, max_delay: 5ms}
    handler:
      http:
        url: %s
        effects:
          statements:
            book:
              sql: update accounts set balance = balance + :amount where id = :account
              params: {account: text, amount: integer}
              rows: 1
            note: {sql: "insert into notes values (:text)", params: {text: text}}
`

// runWithAnswers runs semel with an endpoint. The endpoint responds with status 200 and the effects that the map
// answers has for the id of the message. runWithAnswers returns the counts of the run, and for each id the number
// of calls.
func runWithAnswers(t *testing.T, answers map[string]string) (folder string, counts semel.Counts, calls map[string]int) {
	t.Helper()
	calls = map[string]int{}
	var mutex sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Ce-Id")
		mutex.Lock()
		calls[id]++
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/vnd.semel.effects+json")
		_, _ = fmt.Fprintf(w, `{"effects":[%s]}`, answers[id])
	}))
	t.Cleanup(server.Close)
	folder = t.TempDir()
	var lines strings.Builder
	for id := range answers {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"%s","source":"/bank","type":"ordered","data":%q}`+"\n", id, id)
	}
	for name, text := range map[string]string{
		"semel.yaml": fmt.Sprintf(effectsPolicy, server.URL), "in.jsonl": lines.String(),
		"setup.sql": "create table accounts (id text primary key, balance integer not null check (balance >= 0)); insert into accounts values ('a', 10), ('b', 10); create table notes (text text not null);",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(output(t, folder, "semel", "run", "-o", "json"), &summary); err != nil {
		t.Fatal(err)
	}
	return folder, summary.Consumers["booking"], calls
}

func book(account string, amount int) string {
	return fmt.Sprintf(`{"statement":"book","params":{"account":%q,"amount":%d}}`, account, amount)
}

const note = `{"statement":"note","params":{"text":"hunter2"}}`

func TestWhatAnEndpointAnswersWithIsDoneOnceOrNotAtAll(t *testing.T) {
	t.Run("K10_law_3_of_an_answer_that_cannot_be_applied_nothing_is", func(t *testing.T) {
		folder, counts, calls := runWithAnswers(t, map[string]string{
			"good":    book("a", -3) + "," + book("b", 3) + "," + note,
			"twice":   book("a", -1) + "," + book("a", -1),
			"broke":   note + "," + book("a", 5) + "," + book("b", -1000),
			"nobody":  note + "," + book("c", 1),
			"unknown": note + `,{"statement":"drop","params":{"text":"hunter2"}}`,
			"typed":   note + `,{"statement":"note","params":{"text":17}}`,
			"none":    "",
		})
		if counts.Inbox.Applied != 3 || counts.Inbox.Parked != 4 {
			t.Errorf("%+v", counts)
		}
		const state = "select (select balance from accounts where id = 'a') || ' ' || (select balance from accounts where id = 'b') || ' ' || (select count(*) from notes)"
		if got := string(output(t, folder, "sqlite", "bank.db", state)); got != "5 13 1\n" {
			t.Error(got)
		}
		for id, n := range calls {
			if n != 1 {
				t.Errorf("%s was called for %d times", id, n)
			}
		}
		list := string(output(t, folder, "semel", "messages", "ls"))
		for _, says := range []string{
			"effect 2: the policy declares no statement with this name", "effect 2: statement note: parameter text is not of type text", "bad effects",
			"statement book changed 0 rows, not 1", "condition unmet", "permanent failure", "CHECK constraint failed",
		} {
			if !strings.Contains(list, says) {
				t.Errorf("%q is not in\n%s", says, list)
			}
		}
		if strings.Contains(list, "hunter2") {
			t.Errorf("the list shows what was answered:\n%s", list)
		}
	})
	t.Run("K10_many_answers_at_once_on_a_database_with_one_writer", func(t *testing.T) {
		answers := map[string]string{}
		for i := range 300 {
			answers[fmt.Sprintf("m-%d", i)] = book("a", 1) + "," + note
		}
		folder, counts, calls := runWithAnswers(t, answers)
		if counts.Inbox.Applied != 300 || len(calls) != 300 {
			t.Errorf("%+v", counts)
		}
		if got := string(output(t, folder, "sqlite", "bank.db", "select balance || ' ' || (select count(*) from notes) from accounts where id = 'a'")); got != "310 300\n" {
			t.Error(got)
		}
	})
	t.Run("K1_a_statement_that_the_database_refuses_ends_the_start", func(t *testing.T) {
		folder := effectsExample(t, "node-effects")
		replace(t, folder, "semel.yaml", func(policy string) string { return strings.Replace(policy, "into notes", "into nots", 1) })
		cmd := exec.Command("semel", "run")
		cmd.Dir = folder
		if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "consumers.booking.handler.http.effects.statements.note: the database rejects the statement") {
			t.Errorf("%v: %s", err, text)
		}
	})
}
