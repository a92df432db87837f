package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

func TestTheInboxExampleDoesWhatItsTextSays(t *testing.T) {
	t.Run("D2_a_guarded_state_and_a_projection_behind_an_inbox", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../../examples/inbox")); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(folder, "semel")
		output(t, ".", "go", "build", "-o", binary, ".")
		run := func() map[string]semel.Counts {
			var summary struct{ Consumers map[string]semel.Counts }
			if err := json.Unmarshal(output(t, folder, binary, "run", "-o", "json"), &summary); err != nil {
				t.Fatal(err)
			}
			return summary.Consumers
		}
		sum := run()
		if c := sum["ledger"]; c.Deliveries != 9 || c.Duplicates != 1 || c.Parked != 1 || c.InFlight != 0 {
			t.Errorf("ledger: %+v", c)
		}
		if c := sum["search"]; c.Received != 8 || c.Duplicates != 1 || c.Inbox.Applied != 8 {
			t.Errorf("search: %+v", c)
		}
		const invoices = "select id || ' ' || state from invoices order by id"
		want := "i-1 paid\ni-2 paid\ni-3 paid\n"
		for began := time.Now(); time.Since(began) < reactionTimeout; run() {
			if string(output(t, folder, "sqlite", "invoices.db", invoices)) == want {
				break
			}
		}
		if got := string(output(t, folder, "sqlite", "invoices.db", invoices)); got != want {
			t.Errorf("invoices:\n%s", got)
		}
		output(t, folder, binary, "messages", "ls")
		waits := string(output(t, folder, "sqlite", "invoices.db", "select count(*) from semel_inbox where state in ('FAILED_RETRYABLE', 'PARKED') and finished > 0"))
		if waits != "2\n" { // two rows wait: a payment whose invoice never arrives, and an invoice that the database rejects
			t.Errorf("%s rows wait or are parked", waits)
		}
	})
}
