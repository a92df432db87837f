package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

// notifications returns a folder with a copy of the example notifications. The mailer listens on a free
// port.
func notifications(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"semel.yaml", "setup.sql", "mailer.py", "orders.jsonl"} {
		text, err := os.ReadFile(filepath.Join("../../examples/notifications", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PORT", freePort(t))
	return folder
}

// startMailer starts the mailer in folder and waits until the mailer listens.
func startMailer(t *testing.T, folder string) *python {
	t.Helper()
	return startHandler(t, folder, "python3", "-u", "mailer.py")
}

const mails = "select count(*) || ' mails, ' || count(distinct text) || ' of them different' from mails"

func TestTheExampleOfIntentsDoesWhatItsTextSays(t *testing.T) {
	t.Run("E1_E2_each_order_that_is_placed_has_one_mail", func(t *testing.T) {
		folder := notifications(t)
		startMailer(t, folder)
		var summary struct{ Consumers map[string]semel.Counts }
		if err := json.Unmarshal(output(t, folder, "semel", "run", "-o", "json", "--exit-when-idle", "1s"), &summary); err != nil {
			t.Fatal(err)
		}
		if placing, mailer := summary.Consumers["placing"], summary.Consumers["mailer"]; placing.Applied != 40 || placing.Duplicates != 3 || mailer.Inbox.Applied != 40 {
			t.Errorf("%+v, %+v", placing, mailer)
		}
		if got := string(output(t, folder, "sqlite", "mails.db", mails)); got != "40 mails, 40 of them different\n" {
			t.Error(got)
		}
	})
}

func TestTheExampleOfIntentsUnderKillsOfBothProcesses(t *testing.T) {
	t.Run("law_1_E1_E3_no_order_is_without_its_mail_and_none_has_two", func(t *testing.T) {
		const orders, kills = 700, 6 // so many orders that the run still sends after the last kill, but so few that the log fits into the pipe
		folder := notifications(t)
		var lines strings.Builder
		for i := range orders {
			line := fmt.Sprintf(`{"specversion":"1.0","id":"o-%d","source":"/shop","type":"order.placed","data":{"customer":"c","amount":1}}`+"\n", i)
			lines.WriteString(strings.Repeat(line, 1+i%2)) // every other order is delivered twice
		}
		replace(t, folder, "orders.jsonl", func(string) string { return lines.String() })
		replace(t, folder, "semel.yaml", func(policy string) string {
			return strings.NewReplacer("timeout: 5s", "timeout: 2500ms", "format: cloudevents", "format: cloudevents, follow: true", "    strategy: lease\n",
				"    strategy: lease\n    inbox: {lease: 3s, poll: 50ms, max_crashes: 100}\n    retry: {max_attempts: 1000, initial_delay: 10ms, max_delay: 100ms, budget: {per_second: 1000}}\n").Replace(policy)
		})
		killBoth(t, folder, kills, "POST /send", func() *python { return startMailer(t, folder) },
			func() bool { return haveCompleted(t, folder, "shop.db", orders) })
		if got, want := string(output(t, folder, "sqlite", "mails.db", mails)), fmt.Sprintf("%d mails, %d of them different\n", orders, orders); got != want {
			t.Errorf("%s, and should be %s", got, want)
		}
		if got, want := string(output(t, folder, "sqlite", "shop.db", "select count(*) || ' ' || count(distinct id) from orders")), fmt.Sprintf("%d %d\n", orders, orders); got != want {
			t.Errorf("%s orders, and should be %s", got, want)
		}
	})
}
