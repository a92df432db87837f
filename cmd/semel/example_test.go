package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel"
)

// exampleIn copies the files of the example "payments" to a temporary folder.
func exampleIn(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"semel.yaml", "setup.sql", "payments.jsonl"} {
		text, err := os.ReadFile(filepath.Join("../../examples/payments", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// output runs a program in folder and returns the standard output of the program.
func output(t *testing.T, folder, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = folder, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, stderr.Bytes())
	}
	return out
}

func runExample(t *testing.T, binary, folder string) semel.Counts {
	t.Helper()
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(output(t, folder, binary, "run", "-o", "json"), &summary); err != nil {
		t.Fatal(err)
	}
	return summary.Consumers["billing"]
}

func TestTheExamplesBalancesAreTheReferences(t *testing.T) {
	folder := exampleIn(t)
	binary := filepath.Join(folder, "semel")
	output(t, ".", "go", "build", "-o", binary, ".") // without the race detector, as users build semel
	first := runExample(t, binary, folder)
	if first.Deliveries != 10_000 || first.Applied < 7_000 || first.Applied > 7_500 || first.Failed+first.InFlight != 0 {
		t.Errorf("the first run: %+v", first)
	}
	if sum := first.Applied + first.Duplicates + first.Conflicts + first.Parked + first.DeadLettered + first.Discarded + first.Skipped + first.Failed + first.InFlight; sum != first.Deliveries {
		t.Errorf("the counts add up to %d, not %d", sum, first.Deliveries)
	}
	want := output(t, "../..", "go", "run", "./examples/payments/reference")
	balances := func() []byte {
		return output(t, folder, "sqlite", "payments.db", "select id, balance from accounts order by id")
	}
	if got := balances(); !bytes.Equal(got, want) {
		t.Errorf("balances:\n%s\nreference:\n%s", got, want)
	}
	if again := runExample(t, binary, folder); again != (semel.Counts{}) {
		t.Errorf("the second run: %+v", again)
	}
	output(t, folder, "sqlite", "payments.db", "delete from semel_positions")
	replayed := runExample(t, binary, folder)
	if replayed.Deliveries != 10_000 || replayed.Applied != 0 {
		t.Errorf("with the position deleted: %+v", replayed)
	}
	if got := balances(); !bytes.Equal(got, want) {
		t.Error("with the position deleted the balances changed")
	}
}
