package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestTheCommittedFileIsWhatTheGeneratorWrites(t *testing.T) {
	var again bytes.Buffer
	if err := write(&again); err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../payments.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes(), committed) {
		t.Error("payments.jsonl is not what `go run ./examples/payments/generate` writes")
	}
	if len(committed) > 2<<20 {
		t.Errorf("payments.jsonl has %d bytes, more than 2 MiB", len(committed))
	}
}

func TestTheFileHoldsWhatItPromises(t *testing.T) {
	var file bytes.Buffer
	if err := write(&file); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(file.String(), "\n"), "\n")
	if len(lines) != deliveries {
		t.Errorf("%d deliveries, not %d", len(lines), deliveries)
	}
	contents := map[string]map[string]bool{}
	previous, backwards := "", 0
	for _, line := range lines {
		var p struct {
			ID   string
			Data json.RawMessage
		}
		if json.Unmarshal([]byte(line), &p) != nil || p.ID == "" {
			continue
		}
		if contents[p.ID] == nil {
			contents[p.ID] = map[string]bool{}
		}
		contents[p.ID][string(p.Data)] = true
		if p.ID < previous {
			backwards++
		}
		previous = p.ID
	}
	clashing := 0
	for _, c := range contents {
		clashing += len(c) - 1
	}
	if len(contents) < 7000 || clashing < conflicts/2 || backwards < 1000 {
		t.Errorf("%d ids, %d other contents, %d steps backwards", len(contents), clashing, backwards)
	}
}
