package demo

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAConsumerEndsWithItsBroker(t *testing.T) {
	for _, name := range Names() {
		path := filepath.Join(t.TempDir(), "test.db")
		if err := create(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		err := Consume(t.Context(), name, path, strings.NewReader(""), io.Discard)
		if err == nil || !strings.Contains(err.Error(), "the broker has gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnUnplannedDeathEndsTheDemonstration(t *testing.T) {
	started := make(chan string, 3)
	_, err := Run(t.Context(), Options{Seed: 1, Folder: t.TempDir(), Process: func(ctx context.Context, name, _ string) *exec.Cmd {
		started <- name
		return exec.CommandContext(ctx, os.Args[0], "-no-such-flag")
	}})
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") || !strings.Contains(err.Error(), "the process: ") {
		t.Errorf("the error is %v", err)
	}
	if len(started) == 0 {
		t.Error("no process was started")
	}
}

func TestAnExistingDatabaseIsNotChanged(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, SettleLast+".db")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := runConsumer(t.Context(), Options{Folder: folder}, newPlan(1), SettleLast, nil)
	if err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("the error is %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
