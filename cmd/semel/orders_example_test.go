package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
)

func TestTheOrdersExampleDoesWhatItsTextSays(t *testing.T) {
	t.Run("B4_B5_B9_C8_case_7_versions_keys_and_an_upsert", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../../examples/orders")); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(folder, "semel")
		output(t, ".", "go", "build", "-o", binary, ".")
		stands := func(what, query, want string) {
			t.Helper()
			if got := string(output(t, folder, "sqlite", "shop.db", query)); got != want {
				t.Errorf("%s: %q, and should be %q", what, got, want)
			}
		}
		const (
			history      = "select order_id || group_concat(version, '') from (select * from history order by at) group by order_id"
			reservations = "select article || group_concat(order_id, '') from (select * from reservations order by at) group by article"
			index        = "select group_concat(title || version) from (select * from search_index order by article)"
		)
		var summary struct{ Consumers map[string]semel.Counts }
		if err := json.Unmarshal(output(t, folder, binary, "run", "-o", "json"), &summary); err != nil {
			t.Fatal(err)
		}
		if h, s := summary.Consumers["history"], summary.Consumers["stock"]; h.Applied+h.Inbox.Applied != 4 || h.Duplicates != 1 || s.Parked != 1 || s.Waiting != 2 {
			t.Errorf("%+v", summary)
		}
		stands("history with a gap", history, "o-1123\no-21\n")
		stands("reservations", reservations, "chairo-1o-2\nlampo-1\n")
		stands("the index", index, "Office chair3,Reading lamp2\n")

		output(t, folder, binary, "gaps", "backfill", "history", "--file", "missing.jsonl", "--format", "json", "--because", "found in the archive")
		stands("history without one", history, "o-1123\no-21234\n")

		output(t, folder, "sqlite", "shop.db", "update stock set units = 10 where article = 'lamp'")
		output(t, folder, binary, "messages", "retry", "--all", "--yes", "--because", "more came")
		output(t, folder, binary, "run")
		stands("reservations in their order", reservations, "chairo-1o-2\nlampo-1o-2o-3o-4\n")
	})
}
