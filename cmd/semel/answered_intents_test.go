package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
)

const answeredIntentsPolicy = `version: 1
stores: {bank: {sqlite: {path: bank.db}, migrate: true, setup: setup.sql}}
sources: {in: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  booking:
    from: in
    store: bank
    strategy: lease
    identity: {id: id, source: source}
    alerts: {pending_age: 60s}
    retry: {max_attempts: 3, initial_delay: 1ms, max_delay: 5ms}
    handler:
      http:
        url: %[1]s/book
        effects:
          statements:
            note: {sql: "insert into notes values (:text)", params: {text: text}}
          intents: [mailer]
  mailer:
    store: bank
    strategy: lease
    alerts: {pending_age: 60s}
    handler: {http: {url: "%[1]s/mail"}}
  other:
    store: bank
    strategy: lease
    alerts: {pending_age: 60s}
    handler: {http: {url: "%[1]s/other"}}
`

// sentCall is a call that a sender made to the endpoint.
type sentCall struct {
	header http.Header
	body   string
}

// runWithIntents runs semel with an endpoint. answers has the endpoint's response to each id.
// runWithIntents returns the calls that senders made.
func runWithIntents(t *testing.T, answers map[string]string) (folder string, counts map[string]semel.Counts, mails []sentCall) {
	t.Helper()
	var mutex sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		if r.URL.Path != "/book" {
			mails = append(mails, sentCall{r.Header.Clone(), string(body)})
			return
		}
		w.Header().Set("Content-Type", "application/vnd.semel.effects+json")
		_, _ = io.WriteString(w, answers[r.Header.Get("Ce-Id")])
	}))
	t.Cleanup(server.Close)
	folder = t.TempDir()
	var lines strings.Builder
	for id := range answers {
		line := fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"/bank","type":"ordered","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","data":%q}`+"\n", id, id)
		lines.WriteString(line + line)
	}
	for name, text := range map[string]string{
		"semel.yaml": fmt.Sprintf(answeredIntentsPolicy, server.URL), "in.jsonl": lines.String(), "setup.sql": "create table notes (text text not null);",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(output(t, folder, "semel", "run", "-o", "json", "--exit-when-idle", "100ms"), &summary); err != nil {
		t.Fatal(err)
	}
	return folder, summary.Consumers, mails
}

func TestAnAnswerOrdersWhatIsDoneElsewhere(t *testing.T) {
	good := `{"effects":[` + note + `],"intents":[{"to":"mailer","purpose":"confirmation","type":"mail","recipient":"a@b","body":{"order":17}}]}`
	folder, counts, mails := runWithIntents(t, map[string]string{
		"good":    good,
		"kept":    `{"result":{"receipt": 17}}`,
		"alone":   `{"intents":[{"to":"mailer","purpose":"confirmation"}]}`,
		"refused": strings.Replace(good, `"mailer"`, `"other"`, 1),
		"unknown": strings.Replace(good, `"recipient"`, `"whom"`, 1),
	})
	t.Run("K10_C14_each_is_sent_once_with_an_id_of_its_message_and_what_caused_it", func(t *testing.T) {
		if counts["booking"].Inbox.Applied != 3 || counts["mailer"].Inbox.Applied != 2 || len(mails) != 2 {
			t.Fatalf("%+v, %d mails", counts, len(mails))
		}
		seen := map[string]bool{}
		for _, mail := range mails {
			cause := mail.header.Get("semel-causation-id")
			m := semel.Message{Identity: semel.Key{Consumer: "booking", Source: "/bank", ID: cause}}
			recipient, body := "", `"alone"`
			if cause == "good" {
				recipient, body = "a@b", `{"order":17}`
			}
			if id := m.OutputID("confirmation", recipient); mail.header.Get("ce-id") != id {
				t.Errorf("its id is %s and should be %s", mail.header.Get("ce-id"), id)
			}
			if mail.header.Get("semel-correlation-id") != cause || !strings.HasPrefix(mail.header.Get("traceparent"), "00-0af7651916cd43dd") || mail.body != body ||
				mail.header.Get("ce-subject") != "confirmation" || mail.header.Get("ce-source") != "booking" {
				t.Errorf("to %q: %v %s", recipient, mail.header, mail.body)
			}
			seen[mail.header.Get("ce-id")] = true
		}
		if len(seen) != 2 {
			t.Errorf("ids: %v", seen)
		}
	})
	t.Run("C12_the_result_of_an_answer_is_kept_as_it_was_written", func(t *testing.T) {
		if got := string(output(t, folder, "sqlite", "bank.db", "select group_concat(cast(result as text)) from semel_results")); got != `{"receipt": 17}`+"\n" {
			t.Error(got)
		}
	})
	t.Run("K10_of_an_answer_with_a_wrong_one_nothing_is_done", func(t *testing.T) {
		if got := string(output(t, folder, "sqlite", "bank.db", "select count(*) from notes")); got != "1\n" || counts["booking"].Inbox.Parked != 2 {
			t.Errorf("%s notes, %+v", got, counts["booking"])
		}
		list := string(output(t, folder, "semel", "messages", "ls"))
		for _, says := range []string{"bad effects", "does not allow this endpoint intents for this sender", "it is not an object with only the members of an intent"} {
			if !strings.Contains(list, says) {
				t.Errorf("%q is not in\n%s", says, list)
			}
		}
	})
}
